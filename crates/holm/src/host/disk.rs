//! The filesystem that the Holm root is on.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{XattrFlags, ioctl_ficlone, lsetxattr, statfs};

use super::finding::Answer;
use super::layers;
use super::machine::Machine;
use crate::disk::limit::Backend;
use crate::failed::in_one_line;

/// Whether something can be written in the Holm root.
pub(super) fn writable(machine: &Machine) -> Answer {
    match machine.scratch() {
        Ok(_) => Answer::Yes(format!("{} can be written", machine.root.display())),
        Err(why) => Answer::No(why.to_owned()),
    }
}

pub(super) fn attributes(machine: &Machine) -> Answer {
    machine.try_out(|scratch| {
        let fail =
            |error: rustix::io::Errno| format!("trusted.* on {}: {error}", machine.root.display());
        lsetxattr(scratch.path(), "trusted.holm", b"1", XattrFlags::empty()).map_err(fail)?;
        Ok(format!("trusted.* is kept on {}", machine.root.display()))
    })
}

pub(super) fn reflinks(machine: &Machine) -> Answer {
    machine.try_out(|scratch| {
        let fail = |error: std::io::Error| format!("on {}: {error}", machine.root.display());
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        fs::write(&from, [7; 4096]).map_err(fail)?;
        let (from, to) = (File::open(from).map_err(fail)?, File::create(to).map_err(fail)?);
        ioctl_ficlone(&to, &from).map_err(|error| fail(error.into()))?;
        Ok(format!("files on {} are copied by reference", machine.root.display()))
    })
}

/// Which kind of quota this filesystem has.
pub(super) fn quota(machine: &Machine) -> Answer {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let root = fs::canonicalize(&machine.root).unwrap_or_else(|_| machine.root.clone());
    let kind = filesystem(&text, &root).map_or("a filesystem", |(kind, _)| kind);
    // A root that is not made yet will be on the filesystem of what is above it.
    let there = root.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    match Backend::of(there) {
        Ok(Backend::Project) => Answer::Yes(format!("{kind} with project quota")),
        Ok(Backend::Image) => Answer::No(format!("{kind} without project quota")),
        Err(error) => Answer::Untried(in_one_line(&error)),
    }
}

/// Type and superblock options of the filesystem that `path` is on, from the text of a mountinfo
/// file.
pub(super) fn filesystem<'a>(mountinfo: &'a str, path: &Path) -> Option<(&'a str, &'a str)> {
    let mut best: Option<(usize, &str, &str)> = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let point = before.split(' ').nth(4).unwrap_or_default().replace("\\040", " ");
        let mut after = after.split(' ');
        let (kind, options) = (after.next().unwrap_or_default(), after.nth(1).unwrap_or_default());
        // Of two mounts at one place the later one covers the earlier.
        if path.starts_with(&point) && best.is_none_or(|(length, ..)| point.len() >= length) {
            best = Some((point.len(), kind, options));
        }
    }
    best.map(|(_, kind, options)| (kind, options))
}

/// `statfs` types of the filesystems that Holm is tested on: ext4, XFS, btrfs, F2FS, bcachefs.
const TESTED: [i64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e];

/// Whether the directory is on a filesystem that Holm is tested on. One system call, because every
/// start calls this.
pub(super) fn is_tested(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|stat| TESTED.contains(&stat.f_type))
}

/// Whether guests' layers can be here: known for some filesystems, tried out on others.
pub(super) fn kind(machine: &Machine) -> Answer {
    let root = fs::canonicalize(&machine.root).unwrap_or_else(|_| machine.root.clone());
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some((kind, _)) = filesystem(&text, &root) else {
        return Answer::Partly(format!("no mount holds {}", root.display()));
    };
    let place = format!("{kind} at {}", root.display());
    if is_tested(&root) {
        let free = statfs(&root).map(|stat| free_gib(stat.f_bavail, stat.f_frsize));
        return Answer::Yes(place + &free.unwrap_or_default());
    }
    match layers::overlay(machine) {
        Answer::No(why) => Answer::No(format!("{place} cannot hold a guest's layers: {why}")),
        Answer::Untried(why) => Answer::Untried(format!("{place}: {why}")),
        _ => Answer::Partly(format!("{place}: not tested with Holm")),
    }
}

fn free_gib(blocks: u64, block: i64) -> String {
    let bytes = blocks.saturating_mul(u64::try_from(block).unwrap_or(0));
    format!(", {} GiB free", bytes >> 30)
}
