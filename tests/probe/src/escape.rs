//! What the container escapes of the last years needed: each of these must be shut.

use crate::report::Report;
use crate::{fds, mounts};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount, unmount,
};
use std::fs::{self, OpenOptions};
use std::path::Path;

/// Files by which root of the host makes the kernel run a program, or stops the machine.
const WRITABLE_BY_NOBODY: &[&str] = &[
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/usermodehelper/bset",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/proc/kpageflags",
    "/proc/mtrr",
    "/proc/bus/pci/00/00.0",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/rcu_expedited",
    "/sys/power/state",
    "/sys/module/kernel/parameters/panic",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cgroup.freeze",
    "/sys/fs/cgroup/cgroup.max.depth",
    "/sys/fs/cgroup/release_agent",
];

/// Filesystems that show or steer the host's kernel, or read a disk with the kernel's own parser.
const HOST_FILESYSTEMS: &[&str] = &[
    "devtmpfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "pstore",
    "efivarfs",
    "hugetlbfs",
    "autofs",
    "fusectl",
    "ext4",
    "xfs",
    "btrfs",
    "erofs",
    "squashfs",
    "vfat",
    "iso9660",
];

/// Where a guest's root can make files.
const DIRECTORIES: &[&str] = &["/", "/tmp", "/dev", "/dev/shm", "/run"];

pub fn check(report: &mut Report) {
    fds::check(report);
    for file in WRITABLE_BY_NOBODY {
        report.refused(&format!("{file} for writing"), OpenOptions::new().write(true).open(file));
    }
    filesystems(report);
    old_cgroups(report);
    devices(report);
    programs(report);
    let v1: Vec<_> =
        mounts::all().into_iter().filter(|m| m.kind == "cgroup").map(|m| m.point).collect();
    report.check(v1.is_empty(), "cgroup v1 hierarchies in sight", format!("{v1:?}"));
    let above = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    report.check(!above.contains("/.."), "own cgroup is inside", above.trim().replace('\n', " "));
    report
        .refused("process 0 of the host by /proc/2147483647", fs::read("/proc/2147483647/status"));
}

/// The old and the new way to mount what belongs to the host.
fn filesystems(report: &mut Report) {
    let _ = fs::create_dir_all("/tmp/holm-probe");
    for kind in HOST_FILESYSTEMS {
        let mounted = mount("/dev/holm-probe", "/tmp/holm-probe", *kind, MountFlags::empty(), None);
        if mounted.is_ok() {
            let _ = unmount("/tmp/holm-probe", UnmountFlags::DETACH);
        }
        report.refused(&format!("mount {kind}"), mounted);
        let made = fsopen(*kind, FsOpenFlags::FSOPEN_CLOEXEC).and_then(|context| {
            fsconfig_set_string(&context, "source", "/dev/null")?;
            fsconfig_create(&context)?;
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        });
        report.refused(&format!("fsopen {kind}"), made);
    }
    // A namespace of the host joined by its path would need its /proc.
    for path in ["/proc/1/root/../../../../../..", "/proc/self/root/.."] {
        let out = fs::metadata(path).is_ok_and(|there| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata("/")
                .is_ok_and(|root| (root.dev(), root.ino()) != (there.dev(), there.ino()))
        });
        report.check(!out, path, if out { "leads out" } else { "is the guest's root" });
    }
}

/// A guest's root may mount the v1 hierarchies that the host has, from its own cgroup on; nothing
/// there is its own.
fn old_cgroups(report: &mut Report) {
    const ON: &str = "/tmp/holm-probe";
    for controller in
        ["cpu", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "name=systemd"]
    {
        let data = std::ffi::CString::new(controller).expect("no zero byte");
        if mount("none", ON, "cgroup", MountFlags::empty(), data.as_c_str()).is_err() {
            continue;
        }
        for file in [
            "release_agent",
            "notify_on_release",
            "memory.limit_in_bytes",
            "devices.allow",
            "pids.max",
        ] {
            let written = OpenOptions::new().write(true).open(Path::new(ON).join(file));
            report.refused(&format!("v1 {controller}: write {file}"), written);
        }
        report.refused(
            &format!("v1 {controller}: make a group"),
            fs::create_dir(Path::new(ON).join("probe")),
        );
        let _ = unmount(ON, UnmountFlags::DETACH);
    }
}

/// Nodes of the host's disks, memory and log.
fn devices(report: &mut Report) {
    for directory in DIRECTORIES {
        for (name, kind, major, minor) in [
            ("disk", FileType::BlockDevice, 253, 0),
            ("mem", FileType::CharacterDevice, 1, 1),
            ("kmsg", FileType::CharacterDevice, 1, 11),
            ("null", FileType::CharacterDevice, 1, 3),
        ] {
            let path = Path::new(directory).join(format!("holm-probe-{name}"));
            let made = mknodat(CWD, &path, kind, Mode::from_raw_mode(0o600), makedev(major, minor));
            if made.is_ok() {
                let _ = fs::remove_file(&path);
            }
            report.refused(&format!("mknod {}", path.display()), made);
        }
    }
}

/// Programs of the host behind a process's `exe` (CVE-2019-5736), and its namespaces.
fn programs(report: &mut Report) {
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let exe = entry.path().join("exe");
        let written = OpenOptions::new().write(true).open(&exe);
        // A process without a program (just ended) has none to overwrite.
        report.refused(&format!("overwrite the program of process {name}"), written);
    }
    let tracer = crate::caps::status("TracerPid");
    report.check(tracer == "0", "traced by", tracer.as_str());
}
