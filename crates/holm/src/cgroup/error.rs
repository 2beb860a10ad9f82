//! The errors of this room.

use crate::{Code, Coded, Details};
use rustix::io::Errno;

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of an operation on cgroups.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on a cgroup file failed.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cgroup or file, relative to the hierarchy's root where that is clear.
        path: String,
        /// The kernel's error.
        source: Errno,
    },
    /// No cgroup v2 hierarchy is mounted.
    #[error(
        "no cgroup v2 hierarchy is mounted; mount one (mount -t cgroup2 none /sys/fs/cgroup) \
         or boot with systemd.unified_cgroup_hierarchy=1"
    )]
    NoV2,
    /// Controllers cannot be enabled, because the cgroup contains processes itself.
    #[error(
        "cannot enable cgroup controllers in {path}: that cgroup contains processes itself; \
         move them to a child cgroup, as systemd does when it is init"
    )]
    Occupied {
        /// The file that was written.
        path: String,
    },
    /// The guest's cgroup already contains processes.
    #[error("cgroup {path} already contains processes: {}; stop the guest first", list(.pids))]
    Populated {
        /// `<pool>/NAME`.
        path: String,
        /// Some of the processes.
        pids: Vec<i32>,
    },
    /// Processes did not end in time.
    #[error(
        "cgroup {path} still contains processes: {}; one in state D (ps) waits in the kernel, \
         and ends when that wait does",
        list(.pids)
    )]
    Timeout {
        /// `<pool>/NAME`.
        path: String,
        /// Some of the processes.
        pids: Vec<i32>,
    },
    /// Processes fork faster than they can be moved to the v1 hierarchy of a new limit.
    #[error(
        "cannot move the processes of cgroup {path} to where the new limit is: they fork too \
         fast; freeze the guest, set the limit, thaw it"
    )]
    ForksTooFast {
        /// `<pool>/NAME`.
        path: String,
    },
    /// A limit that this host cannot enforce.
    #[error("{key} cannot be enforced on this host: {why}")]
    Unsupported {
        /// The limit's key in guest.toml.
        key: &'static str,
        /// The reason and the remedy.
        why: String,
    },
    /// A limit with an invalid value.
    #[error("{key} = {value}: {why}")]
    Invalid {
        /// The limit's key in guest.toml.
        key: &'static str,
        /// The value given.
        value: String,
        /// Why it is invalid, and what would be valid.
        why: String,
    },
    /// The kernel refused a limit's value.
    #[error("cannot set {key} ({value:?} in {path})")]
    Limit {
        /// The limit's key in guest.toml.
        key: &'static str,
        /// What was written.
        value: String,
        /// The file it was written to.
        path: String,
        /// The kernel's error.
        source: Errno,
    },
}

impl Error {
    pub(super) fn io(what: &'static str, path: impl Into<String>, source: Errno) -> Self {
        Self::Io { what, path: path.into(), source }
    }
}

fn list(pids: &[i32]) -> String {
    let mut text = pids.iter().take(8).map(i32::to_string).collect::<Vec<_>>().join(", ");
    if pids.len() > 8 {
        text.push_str(", ...");
    }
    if text.is_empty() { "(just ended)".to_owned() } else { text }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Io { path, .. } => Details::new(Code::SystemError).object(path),
            Self::NoV2 => Details::new(Code::CgroupUnavailable)
                .object("/sys/fs/cgroup")
                .reason("no cgroup v2 hierarchy is mounted")
                .remedy("mount -t cgroup2 none /sys/fs/cgroup"),
            Self::Occupied { path } => Details::new(Code::CgroupBusy)
                .object(path)
                .reason("the cgroup contains processes itself")
                .remedy("move them to a child cgroup"),
            Self::Populated { path, .. } => {
                Details::new(Code::CgroupBusy).object(path).remedy("stop the guest first")
            }
            Self::Timeout { path, pids } => Details::new(Code::Timeout)
                .object(path)
                .reason(format!("it still contains processes: {}", list(pids))),
            Self::ForksTooFast { path } => Details::new(Code::CgroupBusy)
                .object(path)
                .reason("its processes fork too fast to be moved")
                .remedy("freeze the guest, set the limit, thaw it"),
            Self::Unsupported { key, why } => {
                Details::new(Code::LimitUnsupported).object(key).reason(why)
            }
            Self::Invalid { key, why, .. } => {
                Details::new(Code::LimitInvalid).object(key).reason(why)
            }
            Self::Limit { key, .. } => Details::new(Code::LimitRefused).object(key),
        }
    }
}
