use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holm_sys::loop_device;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::{Error, Filesystem, Result};
use crate::failed::unless_gone;

/// How long the device of a guest that has ended may take to go.
const GONE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(10);

/// An image file with a filesystem, locked. A loop device that is bound to the file keeps the lock
/// when this is dropped: the lock belongs to the open file, which the device has too. So there is
/// never a second device on an image, and finding that out takes one system call.
#[derive(Debug)]
pub struct DiskImage {
    file: File,
    path: PathBuf,
}

/// A loop device. While this lives it stays bound.
#[derive(Debug)]
pub struct LoopDevice {
    file: File,
    path: PathBuf,
}

impl DiskImage {
    /// Opens and locks an image; `None` while a loop device is bound to it.
    pub fn lock(path: &Path) -> Result<Option<Self>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(|error| Error::io("open the disk image", path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // It may have been resized, and so replaced, after this has opened it.
                let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
                let fail = |error| Error::io("look at", path, error);
                let opened = file.metadata().map(identity).map_err(fail)?;
                let there = std::fs::metadata(path).map(identity).map_err(fail)?;
                Ok((opened == there).then(|| Self { file, path: path.to_owned() }))
            }
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::io("lock the disk image", path, errno)),
        }
    }

    /// The same when its loop device has gone, which it does with the mounts of the last run.
    pub fn lock_when_free(path: &Path) -> Result<Self> {
        let begin = Instant::now();
        loop {
            if let Some(image) = Self::lock(path)? {
                return Ok(image);
            }
            if begin.elapsed() >= GONE {
                let image = path.to_owned();
                return Err(match LoopDevice::bound(path)? {
                    Some(_) => Error::DiskMounted { image },
                    None => Error::DiskInUse { image },
                });
            }
            std::thread::sleep(TICK);
        }
    }

    /// The image's file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Binds it to a free loop device.
    fn bind(self) -> Result<LoopDevice> {
        let control = Path::new("/dev/loop-control");
        let fail = |path: &Path, error| Error::io("get a loop device from", path, error);
        let control_file = open(control).map_err(|error| fail(control, error))?;
        loop {
            let number = loop_device::free_number(control_file.as_fd())
                .map_err(|error| fail(control, error))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let file = open(&path).map_err(|error| fail(&path, error))?;
            match loop_device::bind(file.as_fd(), self.file.as_fd()) {
                Ok(()) => return Ok(LoopDevice { file, path }),
                // Another process was faster.
                Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {}
                Err(error) => return Err(Error::io("bind to a loop device", &self.path, error)),
            }
        }
    }
}

impl LoopDevice {
    /// The loop device of an image: the one that is bound to it, as long as a dead guest's mount
    /// lingers or the guest runs, or a free one. The caller has locked the guest.
    pub fn of(image: &Path) -> Result<Self> {
        let begin = Instant::now();
        loop {
            if let Some(image) = DiskImage::lock(image)? {
                return image.bind();
            }
            if let Some(device) = Self::bound(image)? {
                return Ok(device);
            }
            // The device is gone and has not let go of the file yet.
            if begin.elapsed() >= GONE {
                return Err(Error::DiskInUse { image: image.to_owned() });
            }
            std::thread::sleep(TICK);
        }
    }

    /// The loop device that is bound to an image, if there is one. It looks at all of them.
    pub fn bound(image: &Path) -> Result<Option<Self>> {
        let fail = |path: &Path, error| Error::io("look at", path, error);
        let wanted = std::fs::metadata(image).map_err(|error| fail(image, error))?;
        let all = Path::new("/sys/block");
        for entry in std::fs::read_dir(all).map_err(|error| fail(all, error))? {
            let name = entry.map_err(|error| fail(all, error))?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with("loop")) else {
                continue;
            };
            let bound = all.join(name).join("loop/backing_file");
            let Some(_) = unless_gone(std::fs::metadata(&bound)).map_err(|e| fail(&bound, e))?
            else {
                continue;
            };
            let path = Path::new("/dev").join(name);
            let Some(file) = unless_gone(open(&path)).map_err(|error| fail(&path, error))? else {
                continue;
            };
            match loop_device::bound_to(file.as_fd()) {
                Ok(file_of) if file_of == (wanted.dev(), wanted.ino()) => {
                    return Ok(Some(Self { file, path }));
                }
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {}
                Err(error) => return Err(fail(&path, error)),
            }
        }
        Ok(None)
    }

    /// Mounts the ext4 on it, detached. Mounted a second time it is the same filesystem.
    pub fn mount(&self) -> Result<OwnedFd> {
        Filesystem::open("ext4")?
            .set("source", &self.path)?
            // What the guest deletes takes no room on the host any more.
            .flag("discard")?
            .mount(MountAttrFlags::empty())
    }

    /// Does `work` while the ext4, which is mounted, holds no blocks back
    /// (`reserved_clusters`, Documentation/ABI/testing/sysfs-fs-ext4). On a full disk it takes some
    /// of these for the extents of files whose room had been allocated before; then nothing gets a
    /// block, not even what has just freed one.
    pub fn without_reserve<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let name = self.path.file_name().unwrap_or_default();
        let reserve = Path::new("/sys/fs/ext4").join(name).join("reserved_clusters");
        let blocks = std::fs::read_to_string(&reserve)
            .map_err(|error| Error::io("read", &reserve, error))?;
        let fail = |error| Error::io("write", &reserve, error);
        std::fs::write(&reserve, "0").map_err(fail)?;
        let done = work();
        std::fs::write(&reserve, blocks.trim()).map_err(fail)?;
        Ok(done)
    }

    /// Grows the filesystem, which is mounted, to the length that the image's file has now.
    pub fn grow(&self, mounted: &OwnedFd, blocks: u64) -> io::Result<()> {
        loop_device::take_new_length(self.file.as_fd())?;
        let root = rustix::fs::openat(
            mounted,
            ".",
            rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?;
        loop_device::grow_ext4(root.as_fd(), blocks)
    }
}

fn open(device: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(device)
}
