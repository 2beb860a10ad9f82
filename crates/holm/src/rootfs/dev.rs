use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, makedev, mkdirat, mknodat, symlinkat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::umask;

use super::{Error, Filesystem, Result, mount_tmpfs};

/// The nodes of every guest: name, major and minor number (Documentation/admin-guide/devices.txt).
const NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
    // The first terminal of the guest's devpts is its console.
    ("console", "pts/0"),
];

/// Directories with their modes. `.holm` is for Holm's own and closed to all but guest root.
const DIRECTORIES: [(&str, u32); 6] = [
    ("pts", 0o755),
    ("shm", 0o1777),
    ("mqueue", 0o1777),
    (".holm", 0o700),
    (".holm/proc", 0o555),
    (".holm/sys", 0o555),
];

/// The group that owns terminals (tty in every distribution).
const TTY_GROUP: u32 = 5;

/// A detached tmpfs for the guest's /dev, with its nodes.
///
/// `devices` are devices of the host that the guest gets too.
pub fn mount_dev(
    devices: &[PathBuf],
    flags: MountAttrFlags,
    user_namespace: BorrowedFd<'_>,
) -> Result<OwnedFd> {
    let small = [("size", "1m"), ("nr_inodes", "1k")];
    let dev = mount_tmpfs("0755", &small, flags, Some(user_namespace))?;
    let before = umask(Mode::empty());
    let filled = fill(&dev, devices);
    umask(before);
    filled.map(|()| dev)
}

/// A devpts of the guest's. `base` is the host's id of guest root: devpts maps no ids, so the group
/// is given as the host's id.
pub fn mount_devpts(base: u32, flags: MountAttrFlags) -> Result<OwnedFd> {
    Filesystem::open("devpts")?
        .set("mode", "620")?
        .set("ptmxmode", "666")?
        .set("gid", (base + TTY_GROUP).to_string())?
        .mount(flags)
}

fn fill(dev: &OwnedFd, devices: &[PathBuf]) -> Result<()> {
    let mode = |mode| Mode::from_raw_mode(mode);
    for (name, major, minor) in NODES {
        mknodat(dev, name, FileType::CharacterDevice, mode(0o666), makedev(major, minor))
            .map_err(|errno| Error::io("make the guest's device", name, errno))?;
    }
    for (name, bits) in DIRECTORIES {
        mkdirat(dev, name, mode(bits))
            .map_err(|errno| Error::io("make the guest's /dev directory", name, errno))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, dev, name)
            .map_err(|errno| Error::io("make the guest's /dev link", name, errno))?;
    }
    devices.iter().try_for_each(|device| make_host_device(dev, device))
}

/// Refuses a device of the host that no guest could be given.
pub fn check_device(device: &Path) -> Result<()> {
    let (_, _, inside) = look_at(device)?;
    let own = NODES.map(|node| node.0).into_iter().chain(LINKS.map(|link| link.0));
    let mut own = own.chain(DIRECTORIES.map(|directory| directory.0));
    if own.any(|name| inside == Path::new(name)) { Err(every_guest_has(device)) } else { Ok(()) }
}

fn every_guest_has(device: &Path) -> Error {
    refused(device, "every guest has it; remove it from `devices`")
}

fn refused(device: &Path, reason: &str) -> Error {
    Error::Device { device: device.to_owned(), reason: reason.to_owned() }
}

/// A device of the host: what it is, and where below /dev.
fn look_at(device: &Path) -> Result<(Metadata, FileType, &Path)> {
    let host = std::fs::symlink_metadata(device).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            refused(device, "this host has no such device; see `devices` in guest.toml")
        }
        _ => refused(device, &format!("{error}; see `devices` in guest.toml")),
    })?;
    let kind = match host.file_type() {
        kind if kind.is_char_device() => FileType::CharacterDevice,
        kind if kind.is_block_device() => FileType::BlockDevice,
        _ => return Err(refused(device, "it is not a device node; see `devices` in guest.toml")),
    };
    let inside =
        device.strip_prefix("/dev").map_err(|_| refused(device, "it is not below /dev"))?;
    Ok((host, kind, inside))
}

/// Makes the node of a host device for the guest, open to guest root and its group.
fn make_host_device(dev: &OwnedFd, device: &Path) -> Result<()> {
    let (host, kind, inside) = look_at(device)?;
    for directory in
        inside.ancestors().skip(1).filter(|directory| !directory.as_os_str().is_empty())
    {
        match mkdirat(dev, directory, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => {
                return Err(Error::io("make the guest's /dev directory", directory, errno));
            }
        }
    }
    // Guest root may always use the device; other users have the permissions that they have on the
    // host.
    let bits = Mode::from_raw_mode((host.mode() & 0o666) | 0o660);
    mknodat(dev, inside, kind, bits, host.rdev()).map_err(|errno| match errno {
        Errno::EXIST => every_guest_has(device),
        errno => Error::io("make the guest's device", device, errno),
    })
}
