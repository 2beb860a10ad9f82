//! What of /proc and /sys is covered.
//!
//! The lists are short on purpose. Every mask is a mount (about 10 us of each start, and one more
//! thing to dump and restore), and the user namespace has done most of the work: files of /proc and
//! /sys belong to the host's root, so to guest root they are somebody else's. `sysrq-trigger`, `kcore`,
//! `kmsg`, `timer_list`, `slabinfo`, `core_pattern` and every sysctl that is not of a namespace of the
//! guest's are closed by their owner and mode; /proc/keys shows only keys of users that the guest
//! has. Covered is what anybody may read and what harms.

/// Files that an empty file covers (a read-only bind of the guest's /dev/null).
pub const MASKED_FILES: &[&str] = &[
    // Addresses of the kernel's functions, in clear where kptr_restrict is 0 and perf is not
    // restricted: they undo KASLR.
    "/proc/kallsyms",
    // The host's own boot parameters: they may hold secrets (iSCSI, LUKS), and programs of the guest
    // (cloud-init, initramfs scripts) take orders from them that were meant for the host.
    "/proc/cmdline",
];

/// Folders that an empty read-only tmpfs covers.
pub const MASKED_DIRS: &[&str] = &[
    // The map of physical memory is world-readable below it; and packages that find `efi` or `acpi`
    // there (grub, fwupd) believe that they are on the bare machine.
    "/sys/firmware",
    // The boot loader's raw parameter block (`data` is world-readable): physical addresses again.
    "/sys/kernel/boot_params",
];

/// Filesystems mounted read-only: /sys, as systemd's container interface wants it, so that udevd (8 MiB
/// in each guest) and its triggers stay off. Nothing below it is the guest's but its interfaces, which
/// netlink sets. /proc stays writable: what a guest can write below /proc/sys is of its own namespaces.
pub const READ_ONLY: &[&str] = &["/sys"];
