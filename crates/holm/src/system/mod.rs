//! What a guest needs from Holm to run a distribution's own init, laid over at start.
//!
//! Nothing is ever written into a base. What must be gone at the next start goes below /run, a tmpfs
//! that Holm mounts before init; what belongs to the guest for good is written once into its private
//! layer, and there the SSH keys of its settings are kept up to date. With the capability bound of [`crate::security`] and a read-only /sys, systemd's own
//! conditions skip nearly all that cannot work in a guest, so the list of masked units is short.

mod identity;
mod systemd;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use identity::{Identity, host_name, machine_id, ssh_keys, uuid};

/// A file, link or folder that Holm lays over a guest's root, owned by guest root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Absolute path in the guest.
    pub path: PathBuf,
    /// What is there.
    pub content: Content,
    /// Leave it alone if it is there already.
    pub keep: bool,
}

/// What a laid-over file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text, and the file's mode.
    Text(String, u32),
    /// The target of a symbolic link.
    Link(String),
    /// A folder of this mode.
    Folder(u32),
    /// Lines in a text file whose other lines are the guest's, and the file's mode; none takes those of the last start
    /// away.
    Section(String, u32),
}

impl File {
    fn new(path: &str, content: Content) -> Self {
        let keep = matches!(content, Content::Folder(_));
        Self { path: path.into(), content, keep }
    }

    fn text(path: &str, text: impl Into<String>) -> Self {
        Self::new(path, Content::Text(text.into(), 0o644))
    }

    fn link(path: &str, target: &str) -> Self {
        Self::new(path, Content::Link(target.to_owned()))
    }
}

/// The inits that Holm knows how to treat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// systemd of this major version.
    Systemd(u32),
    /// sysvinit, also when it runs `OpenRC`'s scripts, as Debian packages it.
    SysVinit,
    /// `openrc-init`.
    OpenRc,
    /// runit.
    Runit,
    /// Holm's own.
    Minimal,
    /// Any other program.
    Other,
}

/// How an init is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// By this signal.
    Signal(i32),
    /// By this command, executed inside: no signal makes these inits power off unless their own
    /// files were changed.
    Command(&'static [&'static str]),
}

impl Kind {
    /// From `init_kind` of a base: `systemd 257`, `sysvinit`, `openrc`, `runit`.
    pub fn parse(text: &str) -> Self {
        let (name, version) = text.split_once(' ').unwrap_or((text, ""));
        match name {
            // An unreadable version is taken for the oldest that Holm supports.
            "systemd" => Self::Systemd(version.parse().unwrap_or(247)),
            "sysvinit" => Self::SysVinit,
            "openrc" => Self::OpenRc,
            "runit" => Self::Runit,
            "minimal" => Self::Minimal,
            _ => Self::Other,
        }
    }

    /// How it is asked to end.
    pub fn stop(self) -> Stop {
        match self {
            // SIGRTMIN+3, "halt": systemd(1). The kernel's first real-time signal is 32, but the C
            // libraries keep two for themselves.
            Self::Systemd(_) => Stop::Signal(34 + 3),
            Self::SysVinit | Self::OpenRc | Self::Runit => Stop::Command(&["/sbin/init", "0"]),
            Self::Minimal | Self::Other => Stop::Signal(15),
        }
    }

    /// The command line of process 1, which becomes `init`.
    ///
    /// A systemd guest makes its SSH host keys in a unit. The others have no place for a script of
    /// ours that all of them run before ssh's, so a shell makes the keys and then becomes init.
    pub fn command(self, init: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Self::SysVinit | Self::OpenRc | Self::Runit => {
                &["/bin/sh", "-c", identity::SSH_KEYS_THEN_INIT, init]
            }
            Self::Systemd(_) | Self::Minimal | Self::Other => &[init],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// Whether it says READY=1 on `$NOTIFY_SOCKET` once it is up.
    pub fn notifies(self) -> bool {
        matches!(self, Self::Systemd(_) | Self::Minimal)
    }
}

/// The environment of a guest's init, to which the guest's own `env` is added.
///
/// `uuid` is the guest's machine id (32 hexadecimal digits), `notify` the path of the readiness
/// socket inside.
pub fn environment(kind: Kind, uuid: &str, notify: Option<&str>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |key: &str, value: &str| env.insert(key.to_owned(), value.to_owned());
    set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set("TERM", "linux");
    set("HOME", "/root");
    // https://systemd.io/CONTAINER_INTERFACE: every init and many scripts look at it.
    set("container", "holm");
    if let Some(path) = notify.filter(|_| kind.notifies()) {
        set("NOTIFY_SOCKET", path);
    }
    if let Kind::Systemd(_) = kind {
        set("container_uuid", &identity::uuid(uuid));
        // A pressure trigger of process 1 does not survive a checkpoint, after which systemd spins.
        set("MEMORY_PRESSURE_WATCH", "/dev/null");
    }
    env
}

/// What is laid over at a start.
#[derive(Debug, Clone, Copy)]
pub struct Overlay<'a> {
    /// The guest's init.
    pub kind: Kind,
    /// The guest's machine id.
    pub uuid: &'a str,
    /// /dev/console is a terminal.
    pub console: bool,
    /// The resolver's configuration, if the guest has a network.
    pub resolv_conf: Option<&'a str>,
    /// The text of a systemd-networkd `.network` file for eth0.
    pub networkd: Option<&'a str>,
}

/// The files for /run, folders before what is in them; /run itself is there and empty.
pub fn run_files(overlay: &Overlay<'_>) -> Vec<File> {
    let mut files = vec![File::new("/run/host", Content::Folder(0o755))];
    files.push(File::text("/run/host/container-manager", "holm\n"));
    files.push(File::text("/run/host/container-uuid", uuid(overlay.uuid) + "\n"));
    if let Some(text) = overlay.resolv_conf {
        files.push(File::new("/run/holm", Content::Folder(0o755)));
        files.push(File::text(identity::RESOLV_CONF, text));
    }
    if let Kind::Systemd(version) = overlay.kind {
        files.extend(systemd::files(version, overlay));
    }
    files
}

#[cfg(test)]
mod tests;
