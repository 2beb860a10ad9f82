use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::{Error, Result, Tree, managed_block};
use crate::system::{Content, File};

/// Injects files into the guest's root. Each replaces what is at its path: that may be a link that
/// the guest left there, and writing through it is never safe.
pub fn inject(tree: &Tree, files: &[File]) -> Result<()> {
    files.iter().try_for_each(|file| inject_one(tree, file))
}

fn inject_one(tree: &Tree, file: &File) -> Result<()> {
    if let Content::ManagedBlock(lines, mode) = &file.content {
        return managed_block::write(tree, &file.path, lines, *mode);
    }
    let fail = |errno: Errno| Error::io("write the guest's", &file.path, errno);
    let name = file.path.file_name().unwrap_or_default();
    let directory = tree.directory(file.path.parent().unwrap_or(Path::new("/")))?;
    if let Content::Directory(mode) = file.content {
        return match mkdirat(&directory, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(fail(errno)),
        };
    }
    if file.keep {
        match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
    }
    match unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(fail(errno)),
    }
    match &file.content {
        Content::Directory(_) | Content::ManagedBlock(..) => Ok(()),
        Content::Link(target) => symlinkat(target, &directory, name).map_err(fail),
        Content::Text(text, mode) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let new = openat(&directory, name, flags, Mode::from_raw_mode(*mode)).map_err(fail)?;
            std::fs::File::from(new)
                .write_all(text.as_bytes())
                .map_err(|error| Error::io("write the guest's", &file.path, error))
        }
    }
}

/// Binds a Unix socket at `path` in the guest, writable for its root.
///
/// bind(2) takes a path only, so the directory is named through /proc/self/fd.
pub fn bind_socket(tree: &Tree, socket: &OwnedFd, path: &str) -> Result<()> {
    use std::os::fd::AsRawFd;
    let path = Path::new(path);
    let directory = tree.directory(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fail = |errno: Errno| Error::io("make the guest's socket", path, errno);
    let address = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    let address = SocketAddrUnix::new(address).map_err(fail)?;
    rustix::net::bind(socket, &address).map_err(fail)
}
