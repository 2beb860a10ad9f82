use std::io;
use std::path::{Path, PathBuf};

use crate::pool::Name;
use crate::{Code, Coded, Details, Failed};

/// An error of an operation on a volume.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such volume.
    #[error("there is no volume {name}{near}; `holm volume ls` lists them")]
    NotFound {
        /// The name.
        name: Name,
        /// A guess, as a clause, or nothing.
        near: String,
    },
    /// There is one of this name.
    #[error(
        "there is already a volume {0}; choose another name, or remove it with `holm volume rm {0}`"
    )]
    Exists(Name),
    /// Guests have it.
    #[error("volume {name} is in use by {users}; {remedy}")]
    InUse {
        /// The volume.
        name: Name,
        /// By what, as a list for a sentence.
        users: String,
        /// What to do, as a clause.
        remedy: String,
    },
    /// A part of it is missing or cannot be read.
    #[error("volume {name} is damaged: {reason}; {remedy}", remedy = damage_remedy(name))]
    Damaged {
        /// The volume.
        name: Name,
        /// What is wrong.
        reason: String,
    },
    /// All project ids of volumes are taken.
    #[error(
        "volume {0} cannot have a size limit: all project ids for volumes of this Holm root are \
         taken; remove a volume that has one, or leave the size out"
    )]
    NoProject(Name),
    /// It is in a disk image.
    #[error("volume {0} is in a disk image, which always has a size; give a larger one")]
    ImageKeepsSize(Name),
    /// What it is to hold is more than the disk has, or than its size limit.
    #[error(
        "volume {name}: there is no room for what is in {}; free some on the host's disk, or give \
         the volume a larger size if it has one",
        from.display()
    )]
    NoRoom {
        /// The volume.
        name: Name,
        /// The directory that was copied.
        from: PathBuf,
    },
    /// What the guest has at the target cannot become a volume's content.
    #[error(
        "cannot make volume {name} of what the guest has at {}: {reason}; \
         choose another target, or make the volume first: `holm volume create {name}`",
        target.display()
    )]
    Target {
        /// The volume.
        name: Name,
        /// The path in the guest.
        target: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The root or a name.
    #[error(transparent)]
    Pool(#[from] crate::pool::Error),
    /// A name that Holm does not accept.
    #[error(transparent)]
    Name(#[from] crate::pool::BadName),
    /// The guest's root could not be mounted.
    #[error(transparent)]
    Rootfs(#[from] crate::rootfs::Error),
    /// The mount namespace.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// The quota.
    #[error(transparent)]
    Disk(#[from] crate::disk::Error),
    /// The cgroups of running guests.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
}

fn damage_remedy(name: &Name) -> String {
    format!("restore it from a backup, or remove it with `holm volume rm {name}`")
}

impl Error {
    pub(super) fn io(
        what: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Failed(Failed::new(what, path, source))
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::NotFound { name, .. } => {
                Details::new(Code::VolumeNotFound).object(name).remedy("holm volume ls")
            }
            Self::Exists(name) => Details::new(Code::VolumeExists)
                .object(name)
                .remedy(format!("choose another name, or holm volume rm {name}")),
            Self::InUse { name, users, remedy } => Details::new(Code::VolumeInUse)
                .object(name)
                .reason(format!("it is in use by {users}"))
                .remedy(remedy),
            Self::Damaged { name, reason } => Details::new(Code::VolumeDamaged)
                .object(name)
                .reason(reason)
                .remedy(damage_remedy(name)),
            Self::NoProject(name) => Details::new(Code::LimitUnsupported)
                .object(name)
                .reason("all project ids for volumes are taken")
                .remedy("remove a volume that has a size limit"),
            Self::ImageKeepsSize(name) => Details::new(Code::LimitUnsupported)
                .object(name)
                .reason("a disk image always has a size")
                .remedy("give a larger one"),
            Self::NoRoom { name, from } => Details::new(Code::LimitRefused)
                .object(name)
                .reason(format!("there is no room for what is in {}", from.display()))
                .remedy("free some, or give a larger size"),
            Self::Target { target, reason, .. } => Details::new(Code::MountPointUnusable)
                .object(target.display())
                .reason(reason)
                .remedy("choose another target, or make the volume first"),
            Self::Pool(error) => error.details(),
            Self::Name(error) => error.details(),
            Self::Rootfs(error) => error.details(),
            Self::Process(error) => error.details(),
            Self::Disk(error) => error.details(),
            Self::Cgroup(error) => error.details(),
            Self::Failed(failed) => failed.details(),
        }
    }
}
