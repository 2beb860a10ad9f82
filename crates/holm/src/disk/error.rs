use std::path::PathBuf;

use crate::{Code, Coded, Details, Failed};

/// An error of a private layer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guest was unified on another base.
    #[error(
        "the guest's private layer was unified on base {made_for} as it was then, and cannot lie on \
         {base}: set `base` back, or create the guest anew and copy its files"
    )]
    OtherBase {
        /// The base that it was unified on.
        made_for: String,
        /// The base that it would start on.
        base: String,
    },
    /// The Holm root.
    #[error(transparent)]
    Pool(crate::pool::Error),
    /// Files have the project id that a guest is to get.
    #[error(
        "{files} files have the project id {id} already, which is to be this guest's alone; give \
         them another one (`chattr -p`), or remove them"
    )]
    ProjectTaken {
        /// The project id.
        id: u32,
        /// How many files have it.
        files: u64,
    },
    /// The filesystem enforced limits once.
    #[error(
        "the filesystem of the Holm root no longer enforces project quota, which limits this \
         guest's disk; mount it with the option prjquota, or unset disk.size and disk.inodes"
    )]
    NotEnforced,
    /// A guest's files are to be in an image whose size is not known.
    #[error(
        "disk.inodes needs disk.size here: the filesystem of the Holm root has no project quota, \
         so the guest gets a disk image of that size (`holm doctor quota` tells more)"
    )]
    NoSize,
    /// A guest has files, which an image would hide.
    #[error(
        "the guest has files already, and the filesystem of the Holm root has no project quota to \
         limit them; set disk.size before the first start, or see `holm doctor quota`"
    )]
    NotEmpty,
    /// An image has a size.
    #[error("the guest's files are in a disk image, which always has a size; give a larger one")]
    ImageKeepsSize,
    /// An image has a number of inodes.
    #[error(
        "the guest's files are in a disk image, whose number of inodes is fixed when it is made; a \
         larger disk.size brings more in proportion"
    )]
    ImageKeepsInodes,
    /// A plain root is too large for an image.
    #[error(
        "a guest with disk.kind = \"plain\" can have limits only where the filesystem of the Holm \
         root has project quota (`holm doctor quota` tells how to get it)"
    )]
    PlainNeedsQuota,
    /// A guest has files of the other kind.
    #[error(
        "disk.kind is fixed once the guest has run; create the guest anew with the other kind, and \
         copy its files"
    )]
    KindFixed,
    /// A guest's files do not fit in the size that its image is to have.
    #[error(
        "the disk image {} cannot become so small ({message}); there is more in it than that: \
         give a larger size, or remove files first",
        image.display()
    )]
    DoesNotFit {
        /// The image.
        image: PathBuf,
        /// What resize2fs said.
        message: String,
    },
    /// An image is damaged, or could not be made.
    #[error(
        "the disk image {} cannot be used ({message}); `e2fsck {}` may repair it",
        image.display(), image.display()
    )]
    Image {
        /// The image.
        image: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A namespace of this process.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// A mount.
    #[error(transparent)]
    Mount(#[from] crate::rootfs::Error),
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::OtherBase { made_for, base } => Details::new(Code::LayerOfOtherBase)
                .object(base)
                .reason(format!("the private layer was unified on base {made_for}"))
                .remedy("set `base` back, or create the guest anew and copy its files"),
            Self::ProjectTaken { id, files } => Details::new(Code::LimitUnsupported)
                .object(id)
                .reason(format!("{files} files have this project id already"))
                .remedy("give them another project id, or remove them"),
            Self::NotEnforced => Details::new(Code::LimitUnsupported)
                .reason("the filesystem does not enforce project quota")
                .remedy("mount it with the option prjquota"),
            Self::NoSize => Details::new(Code::LimitUnsupported)
                .object("disk.inodes")
                .remedy("set disk.size too"),
            Self::NotEmpty => Details::new(Code::LimitUnsupported)
                .object("disk.size")
                .reason("the guest has files already")
                .remedy("set it before the first start"),
            Self::ImageKeepsSize => Details::new(Code::LimitUnsupported)
                .object("disk.size")
                .reason("a disk image always has a size")
                .remedy("give a larger one"),
            Self::ImageKeepsInodes => Details::new(Code::LimitUnsupported)
                .object("disk.inodes")
                .reason("the number of inodes of a disk image is fixed")
                .remedy("give a larger disk.size"),
            Self::PlainNeedsQuota => Details::new(Code::LimitUnsupported)
                .object("disk.size")
                .reason("the filesystem does not enforce project quota")
                .remedy("holm doctor quota"),
            Self::KindFixed => Details::new(Code::DiskKindFixed)
                .object("disk.kind")
                .reason("the guest has run")
                .remedy("create the guest anew with the other kind, and copy its files"),
            Self::DoesNotFit { image, message } => Details::new(Code::LimitRefused)
                .object(image.display())
                .reason(message)
                .remedy("give a larger size, or remove files first"),
            Self::Image { image, message } => Details::new(Code::DiskUnusable)
                .object(image.display())
                .reason(message)
                .remedy(format!("e2fsck {}", image.display())),
            Self::Pool(error) => error.details(),
            Self::Process(error) => error.details(),
            Self::Mount(error) => error.details(),
            Self::Failed(failed) => failed.details(),
        }
    }
}
