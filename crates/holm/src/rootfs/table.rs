//! Everything that is mounted in a guest, in the order in which it is mounted.
//!
//! All of it is mounted in a mount namespace that the host's user namespace owns. When init takes a
//! copy of that into one of its own, the kernel locks every mount of the table there
//! (`mount_namespaces(7)`): guest root can neither unmount it nor clear its flags. `docs/mounts.md`
//! shows the table; a unit test compares the two.

use holm_proto::path::INIT;
use rustix::mount::MountAttrFlags as Flags;

/// A mount of a guest.
#[derive(Debug, Clone, Copy)]
pub struct Mount {
    /// Where in the guest.
    pub at: &'static str,
    /// What is mounted.
    pub what: What,
    /// Its flags, and no others.
    pub flags: Flags,
    /// The part of a start in which it is made.
    pub part: Part,
    /// Which guests have it.
    pub when: When,
    /// Who makes it when a checkpointed guest is restored.
    pub restored_by: RestoredBy,
}

/// What is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An overlay of the base's image and objects and the guest's private layer.
    Root,
    /// A tmpfs with the guest's device nodes.
    Devices,
    /// A devpts.
    Terminals,
    /// A tmpfs as large as `memory.shm` says.
    SharedMemory,
    /// A tmpfs.
    Memory,
    /// A read-only tmpfs that holds nothing.
    Empty,
    /// A proc of the guest's pid namespace.
    Proc,
    /// A sysfs of the guest's network namespace.
    Sysfs,
    /// The cgroup2 hierarchy, of the guest's cgroup namespace.
    Cgroup,
    /// The message queues of the guest's ipc namespace.
    MessageQueues,
    /// Minimal init's program, a file of the host.
    Program,
    /// This directory of the host.
    Host(&'static str),
    /// A second mount of what the guest has here, without what is later mounted on top of it.
    Again(&'static str),
    /// This file of the guest.
    File(&'static str),
    /// The volumes that `volumes` in guest.toml names.
    Volumes,
    /// The host's files and directories that `mounts` in guest.toml names.
    Binds,
}

/// The parts of a start that make mounts, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The root.
    Root,
    /// /dev and what is in it.
    Dev,
    /// What the guest's files need.
    Files,
    /// /proc, which needs the guest's pid namespace.
    Proc,
    /// /sys and what else the launcher mounts when it has joined the guest's namespaces.
    Sys,
    /// What guest.toml names. Last: a link that the guest left at a target could lead a bind to
    /// where Holm's own mounts go.
    Binds,
}

/// Which guests have a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// Those whose private layer is on disk. In the others /run is empty anyway.
    Persistent,
    /// Those in which minimal init is executed.
    MinimalInit,
    /// Those that share the host's network.
    HostNetwork,
    /// The others.
    OwnNetwork,
    /// Of the others, those in which containers may run (`security.nesting`).
    Nesting,
    /// Of the others, those in which none may.
    NoNesting,
    /// Those in which a file or directory of this name is there.
    Present(&'static str),
    /// Those whose guest.toml names volumes.
    Volumes,
    /// Those whose guest.toml names files or directories of the host.
    Named,
}

/// Who makes a mount when a checkpointed guest is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredBy {
    /// The launcher: to CRIU it is external, and the kernel holds its flags as after a start.
    Launcher,
    /// CRIU, inside the guest's user namespace: guest root may unmount it.
    Criu,
}

const RO: Flags = Flags::MOUNT_ATTR_RDONLY;
const NOSUID: Flags = Flags::MOUNT_ATTR_NOSUID;
const NODEV: Flags = Flags::MOUNT_ATTR_NODEV;
const NOEXEC: Flags = Flags::MOUNT_ATTR_NOEXEC;

/// Nothing on the kernel's filesystems is a program or a device.
const INERT: Flags = NOSUID.union(NODEV).union(NOEXEC);
/// Devices can be opened there: null is harmless, and nodev would make it unreadable.
const COVER: Flags = RO.union(NOSUID).union(NOEXEC);

/// The flags of the root.
pub const ROOT_FLAGS: Flags = NODEV;

/// The guest's own boot id, for guests with systemd: journald tells boots apart by it.
pub const BOOT_ID: &str = "/dev/.holm/boot_id";

const fn mount(at: &'static str, what: What, flags: Flags, part: Part) -> Mount {
    Mount { at, what, flags, part, when: When::Always, restored_by: RestoredBy::Criu }
}

impl Mount {
    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    const fn external(self) -> Self {
        Self { restored_by: RestoredBy::Launcher, ..self }
    }
}

/// A file of /proc that reads as empty.
const fn masked_file(at: &'static str) -> Mount {
    mount(at, What::File("/dev/null"), COVER, Part::Proc).when(When::Present(at))
}

/// A directory of /sys that is empty.
const fn masked_directory(at: &'static str) -> Mount {
    mount(at, What::Empty, INERT.union(RO), Part::Sys).when(When::Present(at))
}

/// Every mount of a guest, in the order in which they are made.
///
/// Few paths are masked, on purpose. Every mask is a mount (about 10 us of each start, and one more
/// thing to dump and restore), and the user namespace does most of the work: files of /proc and
/// /sys belong to the host's root, so guest root has only the permissions of others.
/// `sysrq-trigger`, `kcore`, `kmsg`, `timer_list`, `slabinfo`, `core_pattern` and every sysctl that
/// is not of a namespace of the guest's are closed by their owner and mode; /proc/keys shows only
/// keys of users that the guest has. What is masked is readable by everybody and does harm.
pub static TABLE: &[Mount] = &[
    mount("/", What::Root, ROOT_FLAGS, Part::Root).external(),
    mount("/dev", What::Devices, NOSUID.union(NOEXEC), Part::Dev).external(),
    mount("/dev/pts", What::Terminals, NOSUID.union(NOEXEC), Part::Dev),
    mount("/dev/shm", What::SharedMemory, NOSUID.union(NODEV), Part::Dev),
    // Every init expects to find it empty at boot.
    mount("/run", What::Memory, NOSUID.union(NODEV), Part::Files).when(When::Persistent),
    // One file in memory for all guests.
    mount(INIT, What::Program, RO.union(NOSUID).union(NODEV), Part::Files)
        .when(When::MinimalInit)
        .external(),
    mount("/proc", What::Proc, INERT, Part::Proc),
    // The kernel lets a process mount proc or sysfs only where it already sees one that nothing
    // covers: without these, containers in the guest and units with ProtectProc= could not start.
    // What the guest mounts itself may be written if this may.
    mount("/dev/.holm/proc", What::Again("/proc"), INERT, Part::Proc),
    // Addresses of the kernel's functions, in clear where kptr_restrict is 0 and perf is not
    // restricted: they defeat KASLR.
    masked_file("/proc/kallsyms"),
    // The host's own boot parameters: they may hold secrets (iSCSI, LUKS), and programs of the
    // guest (cloud-init, initramfs scripts) would obey parameters that are meant for the host.
    masked_file("/proc/cmdline"),
    mount("/proc/sys/kernel/random/boot_id", What::File(BOOT_ID), COVER, Part::Proc)
        .when(When::Present(BOOT_ID)),
    // Read-only: systemd takes that for the mark of a container, and starts no udevd (8 MiB in each
    // guest). Nothing below it is the guest's but its interfaces, which netlink sets. /proc stays
    // writable: what a guest can write below /proc/sys is of its own namespaces.
    mount("/sys", What::Sysfs, INERT.union(RO), Part::Sys).when(When::OwnNetwork),
    // In the host's network nobody can mount a sysfs.
    mount("/sys", What::Host("/sys"), INERT.union(RO), Part::Sys)
        .when(When::HostNetwork)
        .external(),
    mount("/sys/fs/cgroup", What::Cgroup, INERT, Part::Sys),
    mount("/dev/mqueue", What::MessageQueues, INERT, Part::Sys),
    // Some settings of network interfaces there make threads of the host's kernel (`threaded`) or
    // keep its CPUs busy, and no limit counts either.
    mount("/dev/.holm/sys", What::Again("/sys"), INERT.union(RO), Part::Sys).when(When::NoNesting),
    // Engines mount one for writing in privileged containers.
    mount("/dev/.holm/sys", What::Again("/sys"), INERT, Part::Sys).when(When::Nesting),
    // The map of physical memory is world-readable below it; and packages that find `efi` or `acpi`
    // there (grub, fwupd) assume that they run on the bare machine.
    masked_directory("/sys/firmware"),
    // The boot loader's raw parameter block (`data` is world-readable): physical addresses again.
    masked_directory("/sys/kernel/boot_params"),
    // The guest's own disk, as the root is: setuid programs work there, device nodes do not.
    mount("*", What::Volumes, ROOT_FLAGS, Part::Binds).when(When::Volumes).external(),
    mount("*", What::Binds, NOSUID.union(NODEV), Part::Binds).when(When::Named).external(),
];

/// The flags as mount(8) writes them.
pub fn flag_names(flags: Flags) -> String {
    let names = [(RO, "ro"), (NOSUID, "nosuid"), (NODEV, "nodev"), (NOEXEC, "noexec")];
    let names: Vec<&str> =
        names.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name).collect();
    names.join(",")
}

#[cfg(test)]
mod tests;
