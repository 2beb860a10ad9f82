//! An ext4 in a sparse file.
//!
//! It has a journal, so that after a power failure a start replays that instead of checking the
//! whole filesystem; it costs up to a few MiB, and metadata is written twice. No blocks are
//! reserved for root, who is the guest's. The inode tables are holes of the file and need no
//! zeroing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::limits::Limits;
use crate::Failed;
use crate::disk::Error;
use crate::pool::Pool;
use crate::process::call_for_errors;
use crate::rootfs::{DiskImage, LoopDevice};

/// Sizes are multiples of it.
const BLOCK: u64 = 4096;

/// Whether a change of a limit holds already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitted {
    /// It does.
    Now,
    /// It will when the guest is started next.
    AtNextStart,
}

/// What the superblock of an image says (fs/ext4/ext4.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Superblock {
    blocks: u64,
    block: u64,
    clean: bool,
}

/// Makes an image at `path`, which appears complete or not at all.
pub fn make(pool: &Pool, path: &Path, limits: Limits) -> Result<(), Error> {
    let size = limits.size.ok_or(Error::NoSize)?;
    let new = pool.tmp_file("disk.img").map_err(Error::Pool)?;
    let made = write(&new, size, limits.inodes).and_then(|()| {
        fs::rename(&new, path).map_err(|error| Failed::new("make the disk image", path, error))?;
        Ok(())
    });
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made
}

fn write(path: &Path, size: u64, inodes: Option<u64>) -> Result<(), Error> {
    let fail = |error| Failed::new("make the disk image", path, error);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path).map_err(fail)?;
    file.set_len(size / BLOCK * BLOCK).map_err(fail)?;
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-F", "-b", "4096", "-m", "0", "-L", "holm"]);
    mkfs.args(["-E", "nodiscard,lazy_itable_init=1,assume_storage_prezeroed=1,root_owner=0:0"]);
    mkfs.args(inodes.map(|inodes| format!("-N{}", inodes.next_multiple_of(16))));
    run(mkfs.arg(path), path, &[0])?;
    Ok(file.sync_all().map_err(fail)?)
}

/// Prepares the image of a stopped guest, which is locked, for a start: it is checked if it was not
/// unmounted well, and gets the size of its limit. While a mount of the guest's last run lingers,
/// it is left as it is.
pub fn fit(pool: &Pool, path: &Path, limits: Limits) -> Result<Fitted, Error> {
    let Some(image) = DiskImage::lock(path)? else { return Ok(Fitted::AtNextStart) };
    let found = superblock(image.file(), path)?;
    if !found.clean {
        // It mends what it can without asking. 1: it has.
        run(Command::new("e2fsck").args(["-p", "-f"]).arg(path), path, &[0, 1])?;
        pool.report_repair(&format!("the disk image {} was checked", path.display()));
    }
    let wanted = limits.size.map_or(found.blocks * found.block, |size| size / BLOCK * BLOCK);
    if wanted == found.blocks * found.block {
        return Ok(Fitted::Now);
    }
    drop(image);
    if wanted > found.blocks * found.block && grow(path, wanted)? {
        return Ok(Fitted::Now);
    }
    rewrite(pool, path, wanted)?;
    Ok(Fitted::Now)
}

/// The same for an image that nothing but this guest uses: what lingers of its last run is gone in
/// a moment, and a size that needs that waits for it.
pub fn fit_when_free(pool: &Pool, path: &Path, limits: Limits) -> Result<(), Error> {
    if fit(pool, path, limits)? == Fitted::AtNextStart
        && change(path, limits)? == Fitted::AtNextStart
    {
        drop(DiskImage::lock_when_free(path)?);
        fit(pool, path, limits)?;
    }
    Ok(())
}

/// Changes the limit of a guest that runs.
pub fn change(path: &Path, limits: Limits) -> Result<Fitted, Error> {
    let file = File::open(path).map_err(|error| Failed::new("open", path, error))?;
    let found = superblock(&file, path)?;
    let now = found.blocks * found.block;
    let wanted = limits.size.map_or(now, |size| size / BLOCK * BLOCK);
    Ok(if wanted == now || (wanted > now && grow(path, wanted)?) {
        Fitted::Now
    } else {
        Fitted::AtNextStart
    })
}

/// Grows an image and the filesystem in it, which the kernel does step by step with the journal, so
/// that this may be killed. Returns false where this process may not.
fn grow(path: &Path, wanted: u64) -> Result<bool, Error> {
    let fail = |error| Failed::new("grow the disk image", path, error);
    let device = LoopDevice::of(path)?;
    let mounted = device.mount()?;
    let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
    let before = file.metadata().map_err(fail)?.len();
    file.set_len(wanted.max(before)).map_err(fail)?;
    match device.grow(&mounted, wanted / BLOCK) {
        Ok(()) => Ok(true),
        // Only CAP_SYS_RESOURCE lets it grow.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(fail(error).into()),
    }
}

/// Resizes a copy of an image and puts that in its place: resize2fs must not be killed, and this
/// may be.
fn rewrite(pool: &Pool, path: &Path, wanted: u64) -> Result<(), Error> {
    let _image = DiskImage::lock_when_free(path)?;
    let new = pool.tmp_file("disk.img").map_err(Error::Pool)?;
    let made = resized(path, &new, wanted).and_then(|()| {
        fs::rename(&new, path)
            .map_err(|error| Failed::new("resize the disk image", path, error))?;
        Ok(())
    });
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made
}

fn resized(old: &Path, new: &Path, wanted: u64) -> Result<(), Error> {
    let mut cp = Command::new("cp");
    cp.args(["--reflink=auto", "--sparse=always", "--preserve=mode", "--"]).arg(old).arg(new);
    run(&mut cp, old, &[0])?;
    run(Command::new("e2fsck").args(["-p", "-f"]).arg(new), old, &[0, 1])?;
    let fail = |error| Failed::new("resize the disk image", old, error);
    let file = OpenOptions::new().write(true).open(new).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    file.set_len(length.max(wanted)).map_err(fail)?;
    let mut resize = Command::new("resize2fs");
    let resized = run(resize.arg(new).arg(format!("{}K", wanted / 1024)), old, &[0]);
    resized.map_err(|error| match error {
        Error::Image { image, message } if wanted < length => Error::DoesNotFit { image, message },
        other => other,
    })?;
    file.set_len(wanted).and_then(|()| file.sync_all()).map_err(fail)?;
    Ok(())
}

fn superblock(file: &File, path: &Path) -> Result<Superblock, Error> {
    let mut bytes = [0; 1024];
    file.read_exact_at(&mut bytes, 1024)
        .map_err(|error| Failed::new("read the disk image", path, error))?;
    parse(&bytes).ok_or_else(|| Error::Image {
        image: path.to_owned(),
        message: "it contains no ext4".to_owned(),
    })
}

fn parse(bytes: &[u8; 1024]) -> Option<Superblock> {
    const CLEAN: u16 = 1;
    const ERRORS: u16 = 2;
    let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let four = |at: usize| u64::from(two(at)) | u64::from(two(at + 2)) << 16;
    let state = two(0x3a);
    (two(0x38) == 0xef53).then(|| Superblock {
        blocks: four(0x4) | four(0x150) << 32,
        block: 1024 << two(0x18).min(6),
        clean: state & CLEAN != 0 && state & ERRORS == 0,
    })
}

fn run(command: &mut Command, image: &Path, good: &[i32]) -> Result<(), Error> {
    let program = PathBuf::from(command.get_program());
    let called = call_for_errors(command.env("LC_ALL", "C"), "")
        .map_err(|error| Failed::new("run", &program, error))?;
    if called.status.code().is_some_and(|code| good.contains(&code)) {
        return Ok(());
    }
    let said = called.printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let program = program.display().to_string();
    let said = said.trim().trim_start_matches(&*format!("{program}: "));
    let message = format!("{program}: {said}");
    Err(Error::Image { image: image.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks() {
        let mut bytes = [0; 1024];
        assert_eq!(parse(&bytes), None);
        bytes[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        (bytes[0x5], bytes[0x18], bytes[0x3a]) = (1, 2, 1);
        assert_eq!(parse(&bytes), Some(Superblock { blocks: 256, block: 4096, clean: true }));
        bytes[0x3a] = 3;
        assert!(!parse(&bytes).unwrap().clean);
    }
}
