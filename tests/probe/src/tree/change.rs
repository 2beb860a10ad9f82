use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps,
    XattrFlags, fallocate, linkat, lremovexattr, lsetxattr, mknodat, openat, renameat_with,
    utimensat,
};
use rustix::io::Errno;

use super::Random;

const SIZES: [u64; 9] = [0, 1, 64, 65, 4000, 4096, 4097, 20_000, 300_000];
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "name with spaces", "\u{e9}", ".hidden"];
/// `cap_net_raw+ep`, as setcap writes it.
pub const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// `user::rw-, user:1000:rw-, group::r--, mask::rw-, other::r--`
pub const ACL: [u8; 44] = [
    2, 0, 0, 0, //
    1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, //
    2, 0, 6, 0, 0xe8, 3, 0, 0, //
    4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff, //
    0x10, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, //
    0x20, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,
];

/// A change, with paths from the root of a tree.
#[derive(Debug)]
pub enum Change {
    Write { path: PathBuf, size: u64, text: u8 },
    WriteAt { path: PathBuf, at: u64, text: u8 },
    Append { path: PathBuf, text: u8 },
    Truncate { path: PathBuf, size: u64 },
    Punch { path: PathBuf, at: u64 },
    Copy { from: PathBuf, to: PathBuf },
    Unnamed { to: PathBuf, text: u8 },
    Mode { path: PathBuf, mode: u32 },
    Owner { path: PathBuf, id: u32 },
    Touch { path: PathBuf },
    Attribute { path: PathBuf, name: &'static str, value: Vec<u8> },
    NoAttribute { path: PathBuf, name: &'static str },
    Directory { path: PathBuf },
    Link { path: PathBuf, to: PathBuf },
    HardLink { from: PathBuf, to: PathBuf },
    Fifo { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Exchange { a: PathBuf, b: PathBuf },
    Remove { path: PathBuf },
}

impl Change {
    pub fn choose(random: &mut Random, files: &[PathBuf], links: bool) -> Self {
        let some = |random: &mut Random| match files.len() {
            0 => PathBuf::from("a"),
            n => files[random.below(n)].clone(),
        };
        let path = some(random);
        let other = some(random);
        // Directories lead nowhere in half of the cases, so that there are always new files.
        let new = match random.below(3) {
            0 => PathBuf::from(random.one_of(&NAMES)),
            1 => other.join(random.one_of(&NAMES)),
            _ => other.with_file_name(random.one_of(&NAMES)),
        };
        let text = u8::try_from(random.below(6)).unwrap_or(0);
        let at = random.one_of(&SIZES);
        match random.below(30) {
            0..5 => Self::Write { path: new, size: at, text },
            5 => Self::WriteAt { path, at, text },
            6 => Self::Append { path, text },
            7 => Self::Truncate { path, size: at },
            8 => Self::Punch { path, at },
            9..11 => Self::Copy { from: path, to: new },
            11 => Self::Unnamed { to: new, text },
            12 => Self::Mode { path, mode: random.one_of(&[0o600, 0o644, 0o755, 0o4755, 0o2711]) },
            13 => Self::Owner { path, id: random.one_of(&[0, 1, 1000, 65_534]) },
            14 => Self::Touch { path },
            15..17 => {
                let (name, value) = match random.below(4) {
                    0 => ("security.capability", CAPABILITY.to_vec()),
                    1 => ("system.posix_acl_access", ACL.to_vec()),
                    2 => ("user.long", vec![text; 1000]),
                    _ => ("user.short", vec![text; usize::from(text)]),
                };
                Self::Attribute { path, name, value }
            }
            17 => Self::NoAttribute { path, name: random.one_of(&["user.short", "user.long"]) },
            18..21 => Self::Directory { path: new },
            21 => Self::Link { path: new, to: path },
            22 if links => Self::HardLink { from: path, to: new },
            23 => Self::Fifo { path: new },
            24..26 => Self::Rename { from: path, to: new },
            26 => Self::Exchange { a: path, b: other },
            _ => Self::Remove { path },
        }
    }

    /// Makes the change below `root`. The times of what it has touched depend on its number alone.
    pub fn make(&self, root: &Path, number: u64) -> String {
        let result = self.apply(root);
        for path in self.touched() {
            // The directory that it is in may have been reached through a link.
            let parent = path.parent().map(|parent| (parent, AtFlags::empty()));
            let itself = Some((path.as_path(), AtFlags::SYMLINK_NOFOLLOW));
            for (path, how) in [itself, parent].into_iter().flatten() {
                let time = Timespec {
                    tv_sec: 1_600_000_000 + i64::try_from(number).unwrap_or(0),
                    tv_nsec: 123_456_789,
                };
                let times = Timestamps { last_access: time, last_modification: time };
                let _ = utimensat(CWD, root.join(path), &times, how);
            }
        }
        match result {
            Ok(()) => "done".to_owned(),
            // rename(2) allows either, and XFS says the one, overlayfs and ext4 the other.
            Err(error)
                if matches!(self, Self::Rename { .. })
                    && error.kind() == io::ErrorKind::DirectoryNotEmpty =>
            {
                format!("{:?}", io::ErrorKind::AlreadyExists)
            }
            Err(error) => format!("{:?}", error.kind()),
        }
    }

    fn apply(&self, root: &Path) -> io::Result<()> {
        let at = |path: &Path| root.join(path);
        match self {
            Self::Write { path, size, text } => {
                refuse_special(&at(path))?;
                fs::write(at(path), body(*size, *text))
            }
            Self::WriteAt { path, at: offset, text } => {
                opened(&at(path))?.write_all_at(&body(100, *text), *offset)
            }
            Self::Append { path, text } => {
                let file = opened(&at(path))?;
                file.write_all_at(&body(5000, *text), file.metadata()?.len())
            }
            Self::Truncate { path, size } => opened(&at(path))?.set_len(*size),
            Self::Punch { path, at: offset } => {
                let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let file = opened(&at(path))?;
                let mut before = [0; 5000];
                let length = file.read_at(&mut before, *offset)?;
                fallocate(&file, how, *offset, 5000)?;
                if before[..length].iter().any(|byte| *byte != 0) {
                    return Ok(());
                }
                // Where there is a hole already btrfs lets a file keep its capabilities, and
                // overlayfs does not.
                match lremovexattr(at(path), "security.capability") {
                    Err(Errno::NODATA) => Ok(()),
                    removed => Ok(removed?),
                }
            }
            Self::Copy { from, to } => {
                refuse_special(&at(from))?;
                refuse_special(&at(to))?;
                if from == to {
                    return Ok(());
                }
                fs::copy(at(from), at(to)).map(drop)
            }
            Self::Unnamed { to, text } => {
                let dir = at(to.parent().unwrap_or(Path::new("")));
                let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
                let file = File::from(openat(CWD, dir, flags, Mode::from_raw_mode(0o644))?);
                file.write_all_at(&body(4097, *text), 0)?;
                let here = format!("/proc/self/fd/{}", file.as_raw_fd());
                Ok(linkat(CWD, here, CWD, at(to), AtFlags::SYMLINK_FOLLOW)?)
            }
            Self::Mode { path, mode } => {
                refuse_link(&at(path))?;
                fs::set_permissions(at(path), PermissionsExt::from_mode(*mode))
            }
            Self::Owner { path, id } => {
                refuse_link(&at(path))?;
                chown(at(path), Some(*id), Some(*id))
            }
            // The times are set after each change.
            Self::Touch { path } => fs::symlink_metadata(at(path)).map(drop),
            Self::Attribute { path, name, value } => {
                // Overlayfs sets no ACL on a file that only an EROFS image has, of a base or of a
                // unified guest; changing its mode copies it up.
                let mode = fs::symlink_metadata(at(path))?.permissions();
                fs::set_permissions(at(path), mode)?;
                Ok(lsetxattr(at(path), *name, value, XattrFlags::empty())?)
            }
            Self::NoAttribute { path, name } => Ok(lremovexattr(at(path), *name)?),
            Self::Directory { path } => fs::create_dir(at(path)),
            Self::Link { path, to } => symlink(to, at(path)),
            Self::HardLink { from, to } => fs::hard_link(at(from), at(to)),
            Self::Fifo { path } => {
                Ok(mknodat(CWD, at(path), FileType::Fifo, Mode::from_raw_mode(0o644), 0)?)
            }
            Self::Rename { from, to } => fs::rename(at(from), at(to)),
            Self::Exchange { a, b } => {
                Ok(renameat_with(CWD, at(a), CWD, at(b), RenameFlags::EXCHANGE)?)
            }
            Self::Remove { path } => {
                let is_dir = fs::symlink_metadata(at(path))?.is_dir();
                if is_dir { fs::remove_dir_all(at(path)) } else { fs::remove_file(at(path)) }
            }
        }
    }

    fn touched(&self) -> Vec<&PathBuf> {
        match self {
            Self::Write { path, .. }
            | Self::WriteAt { path, .. }
            | Self::Append { path, .. }
            | Self::Truncate { path, .. }
            | Self::Punch { path, .. }
            | Self::Unnamed { to: path, .. }
            | Self::Mode { path, .. }
            | Self::Owner { path, .. }
            | Self::Touch { path }
            | Self::Attribute { path, .. }
            | Self::NoAttribute { path, .. }
            | Self::Directory { path }
            | Self::Link { path, .. }
            | Self::Fifo { path }
            | Self::Remove { path } => vec![path],
            Self::Copy { from, to } | Self::HardLink { from, to } | Self::Rename { from, to } => {
                vec![from, to]
            }
            Self::Exchange { a, b } => vec![a, b],
        }
    }
}

/// A body that depends on its length and a small number only, so that many files are equal.
fn body(size: u64, text: u8) -> Vec<u8> {
    (0..size).map(|n| text.wrapping_add((n / 7).to_le_bytes()[0])).collect()
}

fn opened(path: &Path) -> io::Result<File> {
    refuse_special(path)?;
    OpenOptions::new().read(true).write(true).open(path)
}

/// Opening a fifo waits, and a link may lead out of the tree.
fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(()),
    }
}

fn refuse_link(path: &Path) -> io::Result<()> {
    let is_link = fs::symlink_metadata(path)?.is_symlink();
    if is_link { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(()) }
}
