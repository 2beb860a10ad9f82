//! The programs in the kernel: loading and attaching them, once for each Holm root.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use holm_bpf::{Map, PROGRAMS, Program};
use holm_sys::bpf::{self, Hook, MapKind, Target};
use rustix::fs::{CWD, statfs};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsmount, fsopen, move_mount, unmount,
};

use crate::failed::make_directories;
use crate::net::error::Error;
use crate::net::lock;

/// `BPF_FS_MAGIC` (linux/magic.h).
const BPF_FS: i64 = 0xcafe_4a11;
/// How many guests, and how many addresses of all of them: eight of each family, two for loopback.
const GUESTS: u32 = 1024;
const ADDRESSES: u32 = GUESTS * 18;
const LISTENERS: u32 = 1 << 16;
const QUESTIONS: u32 = 1 << 14;
/// The program that is attached to interfaces, one by one.
const STEER: &str = "steer";

/// Where an instance's maps and links are.
pub fn directory(instance: u8) -> PathBuf {
    PathBuf::from(format!("/run/holm/{instance}/bpf"))
}

fn fail<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Programs { what, object: path.display().to_string(), source }
}

/// Locks the making and removing of programs and entries.
pub fn lock(instance: u8) -> Result<File, Error> {
    lock::lock(lock::path(instance, "native"), &"the programs of native guests")
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

/// Loads the programs and attaches them to the cgroup of the Holm root and to this network
/// namespace. The filesystem with what keeps them there is mounted last: a command that is killed
/// before leaves nothing. The caller has the [`lock`].
pub fn load(instance: u8, pool: BorrowedFd<'_>) -> Result<(), Error> {
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
    let mut maps = Vec::new();
    for kind in Map::ALL {
        let made = bpf::Map::create(kind.name(), map_kind(kind), kind.sizes())
            .map_err(fail("make the map", Path::new(kind.name())))?;
        bpf::pin(made.as_fd(), &inside.join(kind.name()))
            .map_err(fail("pin", Path::new(kind.name())))?;
        maps.push((kind, made));
    }
    let namespace =
        File::open("/proc/self/ns/net").map_err(fail("open", Path::new("/proc/self/ns/net")))?;
    for program in PROGRAMS {
        attach(program, &maps, pool, namespace.as_fd(), &inside)?;
    }
    make_directories(&at, 0o700).map_err(fail("make", &at))?;
    move_mount(mounted.as_fd(), "", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(failed)
}

fn attach(
    program: &Program,
    maps: &[(Map, bpf::Map)],
    pool: BorrowedFd<'_>,
    namespace: BorrowedFd<'_>,
    inside: &Path,
) -> Result<(), Error> {
    let name = Path::new(program.name);
    let Some(hook) = hook(program.name) else { return Ok(()) };
    let used: Vec<_> = program
        .maps
        .iter()
        .filter_map(|(at, wanted)| {
            maps.iter().find(|(kind, _)| kind == wanted).map(|(_, map)| (*at, map))
        })
        .collect();
    let loaded = bpf::load_with_maps(hook, program.name, program.instructions, &used)
        .map_err(fail("load the program", name))?;
    let target = match hook {
        Hook::TcxIngress => {
            // It stays there to be attached by `steer`.
            return bpf::pin(loaded.as_fd(), &inside.join(program.name)).map_err(fail("pin", name));
        }
        Hook::SkLookup => namespace,
        _ => pool,
    };
    bpf::link(loaded.as_fd(), hook, Target::Directory(target))
        .and_then(|link| bpf::pin(link.as_fd(), &inside.join(program.name)))
        .map_err(fail("attach the program", name))
}

/// Has datagrams that arrive at an interface steered to sockets bound to "any". Does nothing if
/// they are already. The caller has the [`lock`].
pub fn steer(instance: u8, interface: u32) -> Result<(), Error> {
    let directory = directory(instance);
    let link = directory.join(format!("{STEER}-{interface}"));
    if link.try_exists().map_err(fail("look at", &link))? {
        return Ok(());
    }
    let program = directory.join(STEER);
    bpf::open_pinned(&program)
        .and_then(|program| {
            bpf::link(program.as_fd(), Hook::TcxIngress, Target::Interface(interface))
        })
        .and_then(|attached| bpf::pin(attached.as_fd(), &link))
        .map_err(fail("attach to an interface", &link))
}

/// Removes the programs and all that they know. The caller has the [`lock`].
pub fn unload(instance: u8) -> Result<(), Error> {
    let at = directory(instance);
    match unmount(&at, UnmountFlags::DETACH) {
        // It is not mounted, or not there.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
        Err(errno) => return Err(fail("unmount", &at)(errno.into())),
    }
    match std::fs::remove_dir(&at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail("remove", &at)(error)),
        _ => Ok(()),
    }
}

fn map_kind(map: Map) -> MapKind {
    match map {
        Map::Guests => MapKind::Hash(GUESTS),
        Map::Owners => MapKind::Hash(ADDRESSES),
        Map::Listeners => MapKind::SockHash(LISTENERS),
        Map::Any => MapKind::SkStorage(false),
        Map::Elsewhere => MapKind::SkStorage(true),
        Map::Asked => MapKind::LruHash(QUESTIONS),
    }
}

fn hook(program: &str) -> Option<Hook> {
    Some(match program {
        "ingress" => Hook::Ingress,
        "egress" => Hook::Egress,
        "sock_create" => Hook::SockCreate,
        "sock_ops" => Hook::SockOps,
        "bind4" => Hook::Bind4,
        "bind6" => Hook::Bind6,
        "connect4" => Hook::Connect4,
        "connect6" => Hook::Connect6,
        "sendmsg4" => Hook::Sendmsg4,
        "sendmsg6" => Hook::Sendmsg6,
        "recvmsg4" => Hook::Recvmsg4,
        "recvmsg6" => Hook::Recvmsg6,
        "getpeername4" => Hook::Getpeername4,
        "getpeername6" => Hook::Getpeername6,
        "getsockname4" => Hook::Getsockname4,
        "getsockname6" => Hook::Getsockname6,
        "sk_lookup" => Hook::SkLookup,
        STEER => Hook::TcxIngress,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_hook() {
        for program in PROGRAMS {
            assert!(hook(program.name).is_some(), "{}", program.name);
        }
    }
}
