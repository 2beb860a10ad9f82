//! The programs in the kernel, once for each Holm root.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use holm_bpf::{BUILD, Map};
use holm_sys::bpf;
use rustix::fs::{CWD, statfs};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsmount, fsopen, move_mount, unmount,
};

use super::directory::{self, Directory, EVERYWHERE, fail};
use crate::failed::make_directories;
use crate::net::error::Error;
use crate::net::netlink::Socket;
use crate::net::{link, lock};

/// `BPF_FS_MAGIC` (linux/magic.h).
const BPF_FS: i64 = 0xcafe_4a11;
/// Where an instance's maps and links are.
pub fn directory(instance: u8) -> PathBuf {
    PathBuf::from(format!("/run/holm/{instance}/bpf"))
}

/// Locks the making and removing of programs and entries, of all instances: they look at one
/// another's addresses.
pub fn lock() -> Result<File, Error> {
    lock::lock(lock::common_path("native"), &"the programs of native guests")
}

/// Whether the programs are there, which is certain for who has the [`lock`].
pub fn are_loaded(instance: u8) -> Result<bool, Error> {
    let directory = directory(instance);
    match statfs(&directory) {
        Ok(found) => Ok(found.f_type == BPF_FS),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(fail("look at", &directory)(errno.into())),
    }
}

/// Opens a map of an instance.
pub fn map(instance: u8, map: Map) -> Result<bpf::Map, Error> {
    let path = directory(instance).join(map.name());
    bpf::Map::open(&path).map_err(fail("open", &path))
}

/// The same; `None` if the programs are not loaded, or are those of a Holm without this map.
pub fn map_if_there(instance: u8, map: Map) -> Result<Option<bpf::Map>, Error> {
    let path = directory(instance).join(map.name());
    match bpf::Map::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(fail("open", &path)),
    }
}

/// Loads the programs, or replaces those of another build of Holm. The caller has the [`lock`].
pub fn make_ready(instance: u8, pool: BorrowedFd<'_>) -> Result<(), Error> {
    if !are_loaded(instance)? {
        return load(instance, pool);
    }
    let at = directory(instance);
    if at.join(BUILD).try_exists().map_err(fail("look at", &at))? {
        return Ok(());
    }
    let directory = Directory { at, pool };
    directory.replace()
}

/// Loads the programs and attaches them to the cgroup of the Holm root and to this network
/// namespace. The filesystem with what keeps them there is mounted last: a command that is killed
/// before leaves nothing.
fn load(instance: u8, pool: BorrowedFd<'_>) -> Result<(), Error> {
    let at = directory(instance);
    let failed = |errno: Errno| fail("mount a bpf filesystem on", &at)(errno.into());
    let filesystem = fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
    fsconfig_create(filesystem.as_fd()).map_err(failed)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mounted =
        fsmount(filesystem.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed)?;
    let inside = PathBuf::from(format!("/proc/self/fd/{}", mounted.as_raw_fd()));
    Directory { at: inside, pool }.fill()?;
    make_directories(&at, 0o700).map_err(fail("make", &at))?;
    move_mount(mounted.as_fd(), "", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(failed)
}

/// Has datagrams that arrive at an interface steered to sockets bound to "any", if they are not
/// already. The caller has the [`lock`].
pub fn steer(instance: u8, interface: u32) -> Result<(), Error> {
    directory::steer(&directory(instance), interface)
}

/// The same for what comes by the interface of a private guest, if native ones run.
pub fn steer_from(instance: u8, interface: u32) -> Result<(), Error> {
    if !are_loaded(instance)? {
        return Ok(());
    }
    directory::steer_from(&directory(instance), &Socket::route()?, interface)
}

/// The same at all interfaces by which packets come, whichever has the address: once, while the
/// first native guest begins to run, as the kernel takes 26 ms or so for each. A start
/// that is killed leaves the rest to the next one. `private` are the interfaces of private guests.
pub fn steer_everywhere(
    instance: u8,
    private: impl FnOnce() -> Result<Vec<u32>, Error>,
) -> Result<(), Error> {
    let at = directory(instance);
    let done = at.join(EVERYWHERE);
    let is_done = || done.try_exists().map_err(fail("look at", &done));
    if is_done()? {
        return Ok(());
    }
    let _lock = lock()?;
    if is_done()? || !are_loaded(instance)? {
        return Ok(());
    }
    let socket = Socket::route()?;
    private()?.into_iter().try_for_each(|it| directory::steer_from(&at, &socket, it))?;
    let interfaces = link::from_elsewhere(&socket)?;
    interfaces.into_iter().try_for_each(|it| directory::steer(&at, it))?;
    fs::create_dir(&done).map_err(fail("make", &done))
}

/// Removes the programs and all that they know. `private` are the interfaces of private guests. The
/// caller has the [`lock`].
pub fn unload(instance: u8, private: &[u32]) -> Result<(), Error> {
    let at = directory(instance);
    if !private.is_empty() {
        let socket = Socket::route()?;
        private.iter().try_for_each(|it| directory::stop_steering_from(&socket, *it))?;
    }
    match unmount(&at, UnmountFlags::DETACH) {
        // It is not mounted, or not there.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
        Err(errno) => return Err(fail("unmount", &at)(errno.into())),
    }
    match fs::remove_dir(&at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail("remove", &at)(error)),
        _ => Ok(()),
    }
}
