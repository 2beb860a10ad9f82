use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::{Error, Result, Tree, section};
use crate::system::{Content, File};

/// Lays files over the guest's root. They are made anew, never written through: what is at their
/// place may be a link that the guest left there.
pub fn lay_over(tree: &Tree, files: &[File]) -> Result<()> {
    files.iter().try_for_each(|file| lay(tree, file))
}

fn lay(tree: &Tree, file: &File) -> Result<()> {
    if let Content::Section(lines, mode) = &file.content {
        return section::lay(tree, &file.path, lines, *mode);
    }
    let fail = |errno: Errno| Error::io("write the guest's", &file.path, errno);
    let name = file.path.file_name().unwrap_or_default();
    let folder = tree.directory(file.path.parent().unwrap_or(Path::new("/")))?;
    if let Content::Folder(mode) = file.content {
        return match mkdirat(&folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(fail(errno)),
        };
    }
    if file.keep && rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Ok(());
    }
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(fail(errno)),
    }
    match &file.content {
        Content::Folder(_) | Content::Section(..) => Ok(()),
        Content::Link(target) => symlinkat(target, &folder, name).map_err(fail),
        Content::Text(text, mode) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let new = openat(&folder, name, flags, Mode::from_raw_mode(*mode)).map_err(fail)?;
            std::fs::File::from(new)
                .write_all(text.as_bytes())
                .map_err(|error| Error::io("write the guest's", &file.path, error))
        }
    }
}

/// Binds a Unix socket at `path` in the guest, writable for its root.
///
/// The kernel makes a socket's file by a path, so the folder is reached through /proc/self/fd.
pub fn bind_socket(tree: &Tree, socket: &OwnedFd, path: &str) -> Result<()> {
    use std::os::fd::AsRawFd;
    let path = Path::new(path);
    let folder = tree.directory(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fail = |errno: Errno| Error::io("make the guest's socket", path, errno);
    let address = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    let address = SocketAddrUnix::new(address).map_err(fail)?;
    rustix::net::bind(socket, &address).map_err(fail)
}
