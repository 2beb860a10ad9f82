//! The lists of sockets in the host's /proc/net, which only root can read while guests run that
//! have `net.hide-sockets`.
//!
//! ```text
//! /run/holm/hidden/COOKIE/   of a network namespace:
//!   files                    the lists that everybody could read before, one in each line
//!   INSTANCE-CONTEXT         an empty file for each guest
//! ```

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failed::make_directories;
use crate::net::error::Error;
use crate::record::Network;

/// In them the kernel shows the sockets of a network namespace to who can open them.
const LISTS: [&str; 13] = [
    "icmp", "icmp6", "netlink", "packet", "raw", "raw6", "tcp", "tcp6", "udp", "udp6", "udplite",
    "udplite6", "unix",
];
const HIDDEN: &str = "/run/holm/hidden";
/// The name of the list of lists.
const FILES: &str = "files";

fn fail(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Setting { what, path, source }
}

fn directory(netns: u64) -> PathBuf {
    PathBuf::from(format!("{HIDDEN}/{netns:x}"))
}

fn guest(network: &Network) -> String {
    format!("{}-{}", network.instance, network.context)
}

/// Hides the lists from others than root until [`show`]. The caller has the lock of native guests;
/// `netns` is the cookie of this network namespace.
pub fn hide(network: &Network, netns: u64) -> Result<(), Error> {
    let directory = directory(netns);
    make_directories(&directory, 0o700).map_err(fail("make", &directory))?;
    let files = directory.join(FILES);
    if !files.try_exists().map_err(fail("read", &files))? {
        let mut readable = Vec::new();
        for name in LISTS {
            if mode(name)? == Some(0o444) {
                readable.push(name);
            }
        }
        let half = directory.join("files.new");
        fs::write(&half, readable.join("\n"))
            .and_then(|()| fs::rename(&half, &files))
            .map_err(fail("write", &files))?;
    }
    let guest = directory.join(guest(network));
    fs::write(&guest, "").map_err(fail("write", &guest))?;
    set_modes(&files, 0o440)
}

/// Shows the lists to everybody again who could read them, after the last guest that must not.
pub fn show(network: &Network, netns: u64) -> Result<(), Error> {
    let directory = directory(netns);
    let guest = directory.join(guest(network));
    match fs::remove_file(&guest) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(fail("remove", &guest)(error));
        }
        _ => {}
    }
    let names: io::Result<Vec<_>> = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.and_then(|all| all.map(|entry| Ok(entry?.file_name())).collect()),
    };
    let mut names = names.map_err(fail("read", &directory))?;
    names.retain(|name| name.to_str().is_none_or(|name| !name.starts_with(FILES)));
    if !names.is_empty() {
        return Ok(());
    }
    set_modes(&directory.join(FILES), 0o444)?;
    fs::remove_dir_all(&directory).map_err(fail("remove", &directory))?;
    // It stays while guests of another network namespace have theirs.
    match fs::remove_dir(HIDDEN) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
            Err(fail("remove", Path::new(HIDDEN))(error))
        }
        _ => Ok(()),
    }
}

fn list(name: &str) -> PathBuf {
    Path::new("/proc/self/net").join(name)
}

/// Who may read a list; `None` if this kernel has none such.
fn mode(name: &str) -> Result<Option<u32>, Error> {
    let path = list(name);
    match fs::metadata(&path) {
        Ok(found) => Ok(Some(found.permissions().mode() & 0o777)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail("read", &path)(error)),
    }
}

/// Sets the mode of all lists that a file names.
fn set_modes(files: &Path, mode: u32) -> Result<(), Error> {
    let names = match fs::read_to_string(files) {
        // A start was killed before it had changed anything.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(fail("read", files))?,
    };
    for path in names.lines().map(list) {
        fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(fail("write", &path))?;
    }
    Ok(())
}
