//! The mounts of a guest's root, tried out by the functions that a start calls.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::chown;
use std::path::PathBuf;

use rustix::fs::{Mode, mkdirat};
use rustix::mount::MountAttrFlags;

use super::child;
use super::finding::Answer;
use super::machine::Machine;
use super::scratch::Scratch;
use crate::failed::in_one_line;
use crate::process::{GuestRoot, run_in_child, unshare_mounts};
use crate::rootfs::{Layers, UPPER, Upper, WORK, clone_tree, mount_image, mount_root};

/// Any range that is no person's: the probe's files live for a moment.
const PROBE_IDS: u32 = 1 << 26;

pub(super) fn image(machine: &Machine) -> Answer {
    machine.try_out(|scratch| {
        mount_image(&write_image(scratch)?, MountAttrFlags::empty())
            .map_err(|error| in_one_line(&error))?;
        Ok("mounted from a file".to_owned())
    })
}

pub(super) fn id_maps(machine: &Machine) -> Answer {
    machine.try_out(|scratch| {
        let namespace = child::user_namespace(PROBE_IDS)?;
        clone_tree(&scratch.directory("mapped")?, Some(namespace.as_fd()))
            .map_err(|error| in_one_line(&error))?;
        Ok(format!("on {}", machine.root.display()))
    })
}

pub(super) fn overlay(machine: &Machine) -> Answer {
    machine.try_out(|scratch| {
        let namespace = child::user_namespace(PROBE_IDS)?;
        run_in_child(0, None, || mount_and_write(scratch, namespace.as_fd()))?;
        Ok("metacopy, data-only and idmapped layers, writable".to_owned())
    })
}

/// Mounts a guest's root, and makes a directory there as guest root would.
fn mount_and_write(scratch: &Scratch, user_namespace: BorrowedFd<'_>) -> Result<String, String> {
    let stage = scratch.directory("stage")?;
    for layer in ["image", "objects", "disk", "root"] {
        scratch.directory(&format!("stage/{layer}"))?;
    }
    for directory in [UPPER, WORK] {
        let path = scratch.directory(&format!("disk/{directory}"))?;
        chown(&path, Some(0), Some(0)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let layers = Layers {
        image: &write_image(scratch)?,
        shared: None,
        unified: None,
        objects: &scratch.directory("objects")?,
        upper: Upper::Disk(&scratch.directory("disk")?),
        xino: true,
    };
    unshare_mounts().map_err(|error| in_one_line(&error))?;
    let _guest_root = GuestRoot::assume(PROBE_IDS).map_err(|error| in_one_line(&error))?;
    let root =
        mount_root(&stage, layers, Some(user_namespace)).map_err(|error| in_one_line(&error))?;
    mkdirat(&root, "probe", Mode::from_raw_mode(0o755))
        .map_err(|errno| format!("cannot write to the overlay: {errno}"))?;
    Ok(String::new())
}

/// Writes an EROFS image with an empty root directory.
fn write_image(scratch: &Scratch) -> Result<PathBuf, String> {
    let file = scratch.path().join("image");
    fs::write(&file, empty_image()).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

/// The smallest EROFS: a superblock and one empty root directory
/// (Documentation/filesystems/erofs.rst).
pub(super) fn empty_image() -> Vec<u8> {
    const ROOT: u8 = 36; // its number counts slots of 32 bytes
    let mut image = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(1024, &0xe0f5_e1e2_u32.to_le_bytes()); // magic
    put(1024 + 12, &[12]); // blocks of 2^12 bytes
    put(1024 + 14, &[ROOT, 0]); // root inode
    put(1024 + 16, &1u64.to_le_bytes()); // inodes
    put(1024 + 36, &1u32.to_le_bytes()); // blocks
    let inode = usize::from(ROOT) * 32;
    put(inode, &4u16.to_le_bytes()); // compact inode, contents behind it
    put(inode + 4, &0o40755u16.to_le_bytes());
    put(inode + 6, &2u16.to_le_bytes()); // links
    put(inode + 8, &27u32.to_le_bytes()); // length of the directory
    for (slot, (name_at, kind)) in [(24u16, 2u8), (25, 2)].into_iter().enumerate() {
        let entry = inode + 32 + slot * 12;
        put(entry, &u64::from(ROOT).to_le_bytes());
        put(entry + 8, &name_at.to_le_bytes());
        put(entry + 10, &[kind]);
    }
    put(inode + 32 + 24, b"...");
    image
}
