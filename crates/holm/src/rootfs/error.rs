use std::io;
use std::path::{Path, PathBuf};

use crate::failed::is_no_room;
use crate::{Code, Coded, Details, Failed};

/// What can go wrong while a guest's mounts are made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a filesystem, and may have said why.
    #[error("cannot mount {kind}{}", said(log))]
    Mount {
        /// The filesystem's type, and what it is for.
        kind: String,
        /// What the kernel wrote into the mount's own message log.
        log: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The overlay was mounted read-only, for which the kernel returns no error.
    #[error(
        "the guest's root was mounted read-only: {} cannot hold a private layer; \
         if it is full, give it more (`holm set NAME disk.size=SIZE`), else put the Holm root on \
         ext4, XFS or btrfs (`holm doctor` explains)",
        disk.display()
    )]
    ReadOnly {
        /// The private layer's directory.
        disk: PathBuf,
    },
    /// The private layer has no room for what the overlay needs.
    #[error(
        "the guest's disk is full: {} has no room for the overlay's work directory; give it more \
         (`holm set NAME disk.size=SIZE`), or make room on the host's disk (`df -h`, `df -i`)",
        disk.display()
    )]
    DiskFull {
        /// The private layer's directory.
        disk: PathBuf,
    },
    /// Something has a guest's disk image open, and is no loop device.
    #[error(
        "the disk image {} is in use; end what has it open (`fuser {}` tells), and start the \
         guest again",
        image.display(), image.display()
    )]
    DiskInUse {
        /// The image.
        image: PathBuf,
    },
    /// What a guest's disk image has to be unmounted for must wait.
    #[error(
        "the disk image {} is still mounted: a process of the host has files of the guest's last \
         run open; end it, and start the guest again",
        image.display()
    )]
    DiskMounted {
        /// The image.
        image: PathBuf,
    },
    /// The guest's own files are in the way of a mount.
    #[error(
        "cannot mount on {} in the guest: {reason}; \
         move it away: the guest's own files are in guests/NAME/disk/upper of the Holm root",
        path.display()
    )]
    Point {
        /// The path in the guest.
        path: PathBuf,
        /// What is in the way.
        reason: String,
    },
    /// A path of the host cannot be bound into the guest.
    #[error("cannot bind {}: {reason}", path.display())]
    Source {
        /// The path on the host.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// A device of the host cannot be made in the guest.
    #[error("cannot make the device {} in the guest: {reason}", device.display())]
    Device {
        /// The path on the host.
        device: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(Failed),
}

impl Error {
    pub(crate) fn io(
        what: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Failed(Failed::new(what, path, source))
    }
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(" (the kernel says: {log})") }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Mount { kind, log, source } => {
                let code = if is_no_room(source) { Code::StorageFull } else { Code::MountFailed };
                let details = Details::new(code).object(kind);
                if log.is_empty() { details } else { details.reason(format!("{source}: {log}")) }
            }
            Self::ReadOnly { disk } => {
                Details::new(Code::FilesystemUnsupported).object(disk.display()).remedy(
                    "a larger disk.size if it is full, else the Holm root on ext4, XFS or btrfs",
                )
            }
            Self::DiskFull { disk } => Details::new(Code::StorageFull)
                .object(disk.display())
                .reason("it has no room for the overlay's work directory")
                .remedy("`holm set NAME disk.size=SIZE`"),
            Self::DiskInUse { image } => Details::new(Code::DiskUnusable)
                .object(image.display())
                .reason("something has it open")
                .remedy(format!("end what `fuser {}` shows", image.display())),
            Self::DiskMounted { image } => Details::new(Code::DiskUnusable)
                .object(image.display())
                .reason("a process of the host has files of the guest's last run open")
                .remedy("end it"),
            Self::Point { path, reason } => Details::new(Code::MountPointUnusable)
                .object(path.display())
                .reason(reason)
                .remedy("move it away"),
            Self::Source { path, reason } => {
                Details::new(Code::MountSourceUnusable).object(path.display()).reason(reason)
            }
            Self::Device { device, reason } => {
                Details::new(Code::DeviceUnusable).object(device.display()).reason(reason)
            }
            Self::Failed(failed) => failed.details(),
        }
    }
}
