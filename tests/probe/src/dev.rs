//! /dev holds exactly what it should.

use crate::report::Report;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Character devices by name, with their numbers.
const NODES: [(&str, (u32, u32)); 6] = [
    ("null", (1, 3)),
    ("zero", (1, 5)),
    ("full", (1, 7)),
    ("random", (1, 8)),
    ("urandom", (1, 9)),
    ("tty", (5, 0)),
];
const LINKS: [&str; 4] = ["fd", "stdin", "stdout", "stderr"];
/// Major numbers of pseudo terminals (Documentation/admin-guide/devices.txt).
const PTY: std::ops::RangeInclusive<u32> = 136..=143;

pub fn check(report: &mut Report, extra: &[&str]) {
    let mut devices = Vec::new();
    collect(Path::new("/dev"), &mut devices);
    for (path, character, number) in &devices {
        let name = path.strip_prefix("/dev").unwrap_or(path).to_string_lossy().into_owned();
        let expected = NODES.contains(&(name.as_str(), *number));
        let terminal = *character && (PTY.contains(&number.0) || *number == (5, 2));
        let asked = extra.contains(&name.as_str());
        report.check(
            *character && (expected || terminal) || asked,
            &path.to_string_lossy(),
            format!("{number:?}"),
        );
    }
    for (name, number) in NODES {
        let there = devices
            .iter()
            .any(|(path, _, n)| path == &Path::new("/dev").join(name) && *n == number);
        report.check(there, &format!("/dev/{name} is there"), there);
    }
    for name in LINKS {
        report.works(&format!("/dev/{name}"), fs::read_link(format!("/dev/{name}")));
    }
    for directory in ["pts", "shm", "mqueue"] {
        report.works(&format!("/dev/{directory}"), fs::read_dir(format!("/dev/{directory}")));
    }
    report.works("/dev/ptmx", fs::File::open("/dev/ptmx"));
    report.works("write /dev/null", fs::write("/dev/null", "x"));
}

/// Every device node below `directory`, on whatever mount.
fn collect(directory: &Path, into: &mut Vec<(PathBuf, bool, (u32, u32))>) {
    // Unmasked copies of /proc and /sys: no devices there, and much to walk.
    if directory == Path::new("/dev/.holm/proc") || directory == Path::new("/dev/.holm/sys") {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        let kind = meta.file_type();
        if kind.is_dir() {
            collect(&entry.path(), into);
        } else if kind.is_char_device() || kind.is_block_device() {
            let rdev = meta.rdev();
            let number = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
            into.push((entry.path(), kind.is_char_device(), number));
        }
    }
}
