//! `docs/mounts.md` has the table as this writes it.

use std::fmt::Write as _;

use super::*;

impl What {
    fn text(self) -> String {
        match self {
            Self::Root => "overlay: base and private layer".to_owned(),
            Self::Devices => "tmpfs with device nodes".to_owned(),
            Self::Terminals => "devpts".to_owned(),
            Self::SharedMemory => "tmpfs of `memory.shm`".to_owned(),
            Self::Memory => "tmpfs".to_owned(),
            Self::Empty => "tmpfs, empty".to_owned(),
            Self::Proc => "proc".to_owned(),
            Self::Sysfs => "sysfs".to_owned(),
            Self::Cgroup => "cgroup2, nsdelegate".to_owned(),
            Self::MessageQueues => "mqueue".to_owned(),
            Self::Program => "bind of Holm's init".to_owned(),
            Self::Host(path) => format!("bind of the host's {path}"),
            Self::Again(path) | Self::File(path) => format!("bind of the guest's {path}"),
            Self::Volumes => "bind of a volume's data".to_owned(),
            Self::Binds => "bind of the host's".to_owned(),
        }
    }
}

impl Part {
    /// In which namespaces the launcher makes it.
    fn namespaces(self) -> &'static str {
        match self {
            Self::Root | Self::Dev | Self::Files | Self::Binds => "host's namespaces",
            Self::Proc => "guest's pid namespace",
            Self::Sys => "guest's network, ipc, cgroup",
        }
    }
}

impl When {
    fn text(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Persistent => "private layer on disk",
            Self::MinimalInit => "minimal init, executed",
            Self::HostNetwork => "`net.mode=host`",
            Self::OwnNetwork => "any other `net.mode`",
            Self::Nesting => "any other, with `security.nesting`",
            Self::NoNesting => "any other, without `security.nesting`",
            Self::Present(BOOT_ID) => "systemd",
            Self::Present(_) => "where the kernel has it",
            Self::Volumes => "each of `volumes`",
            Self::Named => "each of `mounts`",
        }
    }
}

/// The table in Markdown.
fn markdown() -> String {
    let mut text = "| where | what | flags | made in | which guests | restored by |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for mount in TABLE {
        let restored_by = match mount.restored_by {
            RestoredBy::Launcher => "launcher",
            RestoredBy::Criu => "CRIU",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {restored_by} |",
            mount.at.replace('*', "as named"),
            mount.what.text(),
            flag_names(mount.flags),
            mount.part.namespaces(),
            mount.when.text(),
        );
    }
    text
}

#[test]
fn the_documented_table_is_this_one() {
    let page = include_str!("../../../../../docs/mounts.md");
    let table = markdown();
    assert!(page.contains(&table), "docs/mounts.md should have this table:\n{table}");
}

#[test]
fn parts_are_in_their_order() {
    assert!(TABLE.is_sorted_by_key(|mount| mount.part as u8));
    assert_eq!(TABLE[0].what, What::Root);
}

#[test]
fn a_mount_comes_after_those_below_it() {
    for (index, mount) in TABLE.iter().enumerate() {
        if let What::Again(path) = mount.what {
            assert!(TABLE[..index].iter().any(|before| before.at == path), "{}", mount.at);
        }
        let covered = TABLE[index + 1..].iter().find(|later| {
            mount.at.starts_with(later.at) && mount.at != later.at && later.at != "/"
        });
        assert!(covered.is_none(), "{} would be covered by {covered:?}", mount.at);
    }
}

#[test]
fn no_mount_gives_what_the_root_withholds() {
    for mount in TABLE {
        let opens_devices = matches!(mount.what, What::Devices | What::Terminals | What::File(_));
        assert_eq!(mount.flags.contains(NODEV), !opens_devices, "{}", mount.at);
        // Where the guest's own programs are.
        let is_disk = matches!(mount.what, What::Root | What::Volumes);
        assert!(mount.flags.contains(NOSUID) || is_disk, "{}", mount.at);
    }
}
