use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use holm_sys::file::{SharedMap, swap_on, truncate};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, XattrFlags, copy_file_range, fallocate,
    ioctl_ficlone, lgetxattr, linkat, lremovexattr, lsetxattr, openat, sendfile,
};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, pipe, splice};

use super::{BYTES, set_time};

/// A way to change a file.
pub struct Change {
    pub name: &'static str,
    pub make: fn(&Path) -> io::Result<()>,
    pub seen: Seen,
}

/// What the changer sees of the file afterwards.
pub enum Seen {
    /// This body.
    Body(fn(Vec<u8>) -> Vec<u8>),
    /// The same body, and these attributes.
    Attributes(fn(&Path, &Metadata) -> bool),
    /// No file of this name.
    Gone,
    /// It stayed what it was, and the change failed so.
    Refused(&'static [Errno]),
}
use Seen::{Attributes, Body, Gone, Refused};

const BLOCK: u64 = 4096;
/// Where the changes write.
const AT: u64 = 8192;

const fn change(name: &'static str, make: fn(&Path) -> io::Result<()>, seen: Seen) -> Change {
    Change { name, make, seen }
}

pub const CHANGES: &[Change] = &[
    change("truncate", |path| truncate(path, 5), Body(|body| body[..5].to_vec())),
    change("ftruncate", |path| opened(path)?.set_len(5), Body(|body| body[..5].to_vec())),
    change("longer", |path| opened(path)?.set_len(100_000), Body(|body| extended(body, 100_000))),
    change("open-trunc", |path| File::create(path).map(drop), Body(|_| Vec::new())),
    change("append", append, Body(|body| [&body, &b"more"[..]].concat())),
    change("write", |path| opened(path)?.write_all_at(b"more", AT), Body(written)),
    change("direct", direct, Body(|body| replaced(body, AT, &[b'd'; 4096]))),
    change("mapping", mapping, Body(written)),
    change("allocate", allocate, Body(|body| extended(body, BYTES + 4096))),
    change("punch", punch, Body(zeroed)),
    change("zero", |path| change_range(path, FallocateFlags::ZERO_RANGE), Body(zeroed)),
    change("collapse", collapse, Body(|body| [&body[..8192], &body[12_288..]].concat())),
    change("sendfile", send, Body(written)),
    change("splice", spliced, Body(written)),
    change("copy-into", copy_into, Body(written)),
    change("copy-from", copy_from, Attributes(untouched)),
    change("clone-from", clone_from, Attributes(untouched)),
    change("clone-into", clone_into, Body(|body| body)),
    change("old-reader", old_reader, Body(written)),
    change("old-writer", old_writer, Body(|body| body[..5].to_vec())),
    change("old-mapping", old_mapping, Body(written)),
    change("rename-over", rename_over, Body(|_| b"more".to_vec())),
    change("unnamed-over", unnamed_over, Body(|_| b"more".to_vec())),
    change("rename", rename, Gone),
    change("unlink", |path| fs::remove_file(path), Gone),
    change("link-write", link_and_write, Body(written)),
    change("chmod-write", chmod_and_write, Body(written)),
    change("link", |path| fs::hard_link(path, beside(path)), Attributes(|_, is| is.nlink() == 2)),
    change("chmod", |path| chmod(path, 0o4600), Attributes(|_, is| is.mode() & 0o7777 == 0o4600)),
    change("chown", |path| chown(path, Some(7), Some(8)), Attributes(|_, is| is.gid() == 8)),
    change("utimes", |path| set_time(path, 1), Attributes(|_, is| is.mtime() == 1)),
    change("setxattr", set_attribute, Attributes(|path, _| attribute(path) == Ok(*b"new"))),
    change(
        "removexattr",
        |path| Ok(lremovexattr(path, "user.shared")?),
        Attributes(|path, _| attribute(path) == Err(Errno::NODATA)),
    ),
    change("swapon", swap_on, Refused(&[Errno::PERM, Errno::NOSYS])),
];

fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// A file that is the guest's own, with a few bytes.
fn own(path: &Path) -> io::Result<File> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all(b"more")?;
    file.rewind()?;
    Ok(file)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    PathBuf::from(name)
}

fn replaced(mut body: Vec<u8>, at: u64, by: &[u8]) -> Vec<u8> {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    body[at..at + by.len()].copy_from_slice(by);
    body
}

fn written(body: Vec<u8>) -> Vec<u8> {
    replaced(body, AT, b"more")
}

fn zeroed(body: Vec<u8>) -> Vec<u8> {
    replaced(body, AT, &[0; 4096])
}

fn extended(mut body: Vec<u8>, bytes: usize) -> Vec<u8> {
    body.resize(bytes, 0);
    body
}

fn untouched(_: &Path, found: &Metadata) -> bool {
    found.mtime() == super::TIME && found.nlink() == 1
}

fn differs(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"more")
}

fn direct(path: &Path) -> io::Result<()> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    let buffer = vec![b'd'; 8192];
    let start = buffer.as_ptr().align_offset(4096);
    file.write_all_at(&buffer[start..start + 4096], AT)
}

fn mapping(path: &Path) -> io::Result<()> {
    let mut map = SharedMap::new(opened(path)?.as_fd(), BYTES, true)?;
    for (at, byte) in (AT..).zip(b"more") {
        map.set(usize::try_from(at).unwrap_or(0), *byte);
    }
    Ok(())
}

fn allocate(path: &Path) -> io::Result<()> {
    Ok(fallocate(opened(path)?, FallocateFlags::empty(), BYTES as u64, BLOCK)?)
}

fn punch(path: &Path) -> io::Result<()> {
    change_range(path, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE)
}

fn change_range(path: &Path, how: FallocateFlags) -> io::Result<()> {
    Ok(fallocate(opened(path)?, how, AT, BLOCK)?)
}

/// btrfs cannot take a range out of a file; the rest is moved by hand there.
fn collapse(path: &Path) -> io::Result<()> {
    match change_range(path, FallocateFlags::COLLAPSE_RANGE) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    let rest = fs::read(path)?.split_off(12_288);
    let file = opened(path)?;
    file.write_all_at(&rest, 8192)?;
    file.set_len(8192 + rest.len() as u64)
}

fn send(path: &Path) -> io::Result<()> {
    let (from, mut to) = (own(&beside(path))?, opened(path)?);
    to.seek(SeekFrom::Start(AT))?;
    sendfile(&to, &from, None, 4)?;
    Ok(())
}

fn spliced(path: &Path) -> io::Result<()> {
    let (from, to) = pipe()?;
    rustix::io::write(&to, b"more")?;
    let mut at = AT;
    splice(&from, None, opened(path)?, Some(&mut at), 4, SpliceFlags::empty())?;
    Ok(())
}

/// Overlayfs copies between files of one filesystem only, and the caller copies otherwise.
fn copy(from: &File, from_at: u64, to: &File, to_at: u64) -> io::Result<()> {
    let (mut reading, mut writing) = (from_at, to_at);
    match copy_file_range(from, Some(&mut reading), to, Some(&mut writing), 4) {
        Ok(_) => Ok(()),
        Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL) => {
            let mut bytes = [0; 4];
            from.read_exact_at(&mut bytes, from_at)?;
            to.write_all_at(&bytes, to_at)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn copy_into(path: &Path) -> io::Result<()> {
    copy(&own(&beside(path))?, 0, &opened(path)?, AT)
}

fn copy_from(path: &Path) -> io::Result<()> {
    let to = own(&beside(path))?;
    copy(&File::open(path)?, AT, &to, 0)?;
    let mut bytes = [0; 4];
    to.read_exact_at(&mut bytes, 0)?;
    to.write_all_at(b"else", 0)?;
    let same = fs::read(path)?[8192..8196] == bytes;
    if same { Ok(()) } else { Err(differs("the copy is another")) }
}

/// ext4 cannot clone; then there is nothing to look at.
fn cloned(to: &File, from: &File) -> io::Result<bool> {
    match ioctl_ficlone(to, from) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn clone_from(path: &Path) -> io::Result<()> {
    let to = own(&beside(path))?;
    if cloned(&to, &File::open(path)?)? {
        to.write_all_at(b"else", AT)?;
    }
    Ok(())
}

/// A clone of what has the same body, written to.
fn clone_into(path: &Path) -> io::Result<()> {
    let from = own(&beside(path))?;
    from.write_all_at(&fs::read(path)?, 0)?;
    cloned(&opened(path)?, &from)?;
    from.write_all_at(b"else", AT)
}

/// A descriptor that was opened for reading before reads what is written since: overlayfs opens the
/// copy behind it.
fn old_reader(path: &Path) -> io::Result<()> {
    let old = File::open(path)?;
    opened(path)?.write_all_at(b"more", AT)?;
    let mut bytes = [0; 4];
    old.read_exact_at(&mut bytes, AT)?;
    if &bytes == b"more" { Ok(()) } else { Err(differs("the old descriptor reads old bytes")) }
}

/// One that was opened for writing before writes to the file that the name is.
fn old_writer(path: &Path) -> io::Result<()> {
    let old = opened(path)?;
    opened(path)?.write_all_at(b"more", AT)?;
    old.set_len(5)
}

/// A shared mapping that was made before shows what was there then.
fn old_mapping(path: &Path) -> io::Result<()> {
    let old = SharedMap::new(File::open(path)?.as_fd(), BYTES, false)?;
    let at = usize::try_from(AT).unwrap_or(0);
    let before = old.get(at);
    opened(path)?.write_all_at(b"more", AT)?;
    if old.get(at) == before { Ok(()) } else { Err(differs("the old mapping has changed")) }
}

fn rename_over(path: &Path) -> io::Result<()> {
    own(&beside(path))?;
    fs::rename(beside(path), path)
}

/// The unnamed file gets a name beside it, which then replaces it: a link replaces nothing.
fn unnamed_over(path: &Path) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = File::from(openat(CWD, dir, flags, Mode::from_raw_mode(0o644))?);
    file.write_all(b"more")?;
    let here = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, &here, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Err(Errno::EXIST) => {}
        other => return Err(differs(&format!("a link over a file: {other:?}"))),
    }
    linkat(CWD, &here, CWD, beside(path), AtFlags::SYMLINK_FOLLOW)?;
    fs::rename(beside(path), path)
}

fn rename(path: &Path) -> io::Result<()> {
    fs::rename(path, beside(path))?;
    let mut start = [0; 8];
    File::open(beside(path))?.read_exact(&mut start)?;
    opened(&beside(path))?.write_all_at(b"more", AT)
}

fn link_and_write(path: &Path) -> io::Result<()> {
    fs::hard_link(path, beside(path))?;
    opened(&beside(path))?.write_all_at(b"more", AT)
}

fn chmod_and_write(path: &Path) -> io::Result<()> {
    chmod(path, 0o600)?;
    opened(path)?.write_all_at(b"more", AT)
}

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

fn set_attribute(path: &Path) -> io::Result<()> {
    Ok(lsetxattr(path, "user.shared", b"new", XattrFlags::empty())?)
}

fn attribute(path: &Path) -> Result<[u8; 3], Errno> {
    let mut value = [0; 3];
    lgetxattr(path, "user.shared", &mut value[..]).map(|_| value)
}
