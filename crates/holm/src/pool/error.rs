use std::io;
use std::path::{Path, PathBuf};

use super::name::{BadName, Name};
use crate::{Code, Coded, Details, Failed};

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of an operation on a Holm root.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that Holm does not accept.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// A guest that does not exist.
    #[error("there is no guest {name}{}", nearest(name, known))]
    NoGuest {
        /// The guest asked for.
        name: Name,
        /// Those that exist.
        known: Vec<Name>,
    },
    /// The caller is not root.
    #[error("holm must be run as root (sudo holm ...)")]
    NotPrivileged,
    /// There is no Holm root.
    #[error(
        "there is no Holm root at {0}: check the name, or make one with \
         `holm --root {0} base import NAME SOURCE`",
        root.display()
    )]
    NoRoot {
        /// Where one was looked for.
        root: PathBuf,
    },
    /// The directory has other content.
    #[error(
        "{0} is not a Holm root, and is not empty: name an empty directory or one that does not \
         exist, such as --root {1}",
        root.display(),
        root.join("holm").display()
    )]
    NotEmpty {
        /// The directory.
        root: PathBuf,
    },
    /// The directory belongs to a user of the host.
    #[error(
        "the Holm root {0} belongs to uid {uid}, who could change what runs as root in it: \
         `chown root:root {0}`, or name another directory (--root)",
        root.display()
    )]
    NotOwned {
        /// The root.
        root: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Users of the host can look into the directory, and its mode cannot be changed.
    #[error(
        "other users of the host can read what is in the Holm root {} (mode {mode:04o}), and that \
         cannot be changed: put it on ext4, XFS or btrfs, or name another directory (--root)",
        root.display()
    )]
    Open {
        /// The root.
        root: PathBuf,
        /// Its mode.
        mode: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// All instance numbers are taken by other roots.
    #[error(
        "all {count} instance numbers are taken by other Holm roots, see {}; \
         `holm --root ROOT release` frees the number of a root that is no longer used",
        directory.display()
    )]
    NoInstance {
        /// The directory of instance numbers.
        directory: PathBuf,
        /// How many there are.
        count: u8,
    },
    /// Another command is running in the root.
    #[error(
        "another holm command is running in {}; try again when it has ended (ps -C holm shows it)",
        root.display()
    )]
    InUse {
        /// The root.
        root: PathBuf,
    },
    /// All context ids of this root are taken.
    #[error(
        "no id range is left: {count} guests have one each; \
         remove a guest (`holm rm`), or put new ones into another root (--root)"
    )]
    NoIds {
        /// How many are taken.
        count: usize,
    },
    /// The cgroups of guests.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Failed(Failed::new(what, path, source))
    }
}

/// A closing clause with the existing name that is most similar to `wanted`, or with all if they
/// are few.
fn nearest(wanted: &Name, known: &[Name]) -> String {
    let similar = known.iter().find(|name| {
        let (a, b) = (name.as_str(), wanted.as_str());
        a.starts_with(b) || b.starts_with(a) || a.eq_ignore_ascii_case(b)
    });
    match (similar, known) {
        (Some(name), _) => format!("; did you mean {name}?"),
        (None, []) => "; there are none yet, `holm create` makes one".to_owned(),
        (None, few) if few.len() <= 8 => {
            let names: Vec<&str> = few.iter().map(Name::as_str).collect();
            format!("; there are: {}", names.join(", "))
        }
        _ => "; `holm ls` lists them".to_owned(),
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::BadName(error) => error.details(),
            Self::NoGuest { name, .. } => {
                Details::new(Code::GuestNotFound).object(name).remedy("holm ls")
            }
            Self::NotPrivileged => {
                Details::new(Code::NotPrivileged).remedy("run holm as root (sudo holm ...)")
            }
            Self::NoRoot { root } => Details::new(Code::RootNotFound)
                .object(root.display())
                .remedy("check the name, or make one with holm --root DIR base import NAME SOURCE"),
            Self::NotEmpty { root } => Details::new(Code::RootUnusable)
                .object(root.display())
                .reason("it is not a Holm root, and is not empty")
                .remedy("name an empty directory, or one that does not exist (--root)"),
            Self::NotOwned { root, uid } => Details::new(Code::RootUnusable)
                .object(root.display())
                .reason(format!("it belongs to uid {uid}"))
                .remedy("chown root:root it, or name another directory (--root)"),
            Self::Open { root, .. } => Details::new(Code::RootUnusable)
                .object(root.display())
                .remedy("put it on ext4, XFS or btrfs, or name another directory (--root)"),
            Self::NoInstance { .. } => {
                Details::new(Code::InstancesExhausted).remedy("holm --root ROOT release")
            }
            Self::InUse { root } => Details::new(Code::RootInUse)
                .object(root.display())
                .reason("another holm command is running in it")
                .remedy("try again when it has ended"),
            Self::NoIds { .. } => Details::new(Code::IdsExhausted)
                .remedy("remove a guest, or put new ones into another root (--root)"),
            Self::Cgroup(error) => error.details(),
            Self::Failed(failed) => failed.details(),
        }
    }
}
