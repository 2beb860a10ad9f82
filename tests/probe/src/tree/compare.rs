use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, llistxattr};

use super::paths;

/// Compares two trees: names, types, contents, modes, owners, times, attributes and hard links.
/// Prints what differs.
pub fn compare(one: &str, other: &str) -> bool {
    let (one, other) = (Path::new(one), Path::new(other));
    let (ours, theirs) = (paths(one), paths(other));
    let mut same = true;
    for path in theirs.iter().filter(|path| !ours.contains(path)) {
        println!("HOLE {} is missing", path.display());
        same = false;
    }
    for path in &ours {
        if !theirs.contains(path) {
            println!("HOLE {} should not be there", path.display());
            same = false;
            continue;
        }
        for (a, b) in file(&one.join(path)).into_iter().zip(file(&other.join(path))) {
            if a != b {
                println!("HOLE {}: {a}, but should be {b}", path.display());
                same = false;
            }
        }
    }
    let (a, b) = (links(one, &ours), links(other, &theirs));
    if a != b {
        println!("HOLE hard links: {a:?}, but should be {b:?}");
        same = false;
    }
    same
}

/// All that is compared of one file, each as a sentence.
fn file(path: &Path) -> Vec<String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) => return vec![format!("cannot be looked at: {error}")],
    };
    let size = if found.is_dir() { 0 } else { found.size() };
    let content = if found.is_symlink() {
        fs::read_link(path).map(|target| target.display().to_string())
    } else if found.is_file() {
        fs::read(path).map(|body| format!("body {:x}", sum(&body)))
    } else {
        Ok(String::new())
    };
    vec![
        format!("mode {:o}", found.mode()),
        format!("owner {}:{}", found.uid(), found.gid()),
        format!("{size} bytes"),
        format!("changed {}.{:09}", found.mtime(), found.mtime_nsec()),
        content.unwrap_or_else(|error| format!("cannot be read: {error}")),
        attributes(path),
    ]
}

fn attributes(path: &Path) -> String {
    let mut names = vec![0; 1 << 16];
    let listed = llistxattr(path, &mut names).unwrap_or(0);
    let mut all: Vec<String> = names[..listed]
        .split(|b| *b == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 1 << 16];
            let length = lgetxattr(path, OsStr::from_bytes(name), &mut value).unwrap_or(0);
            format!("{}={:x}", OsStr::from_bytes(name).display(), sum(&value[..length]))
        })
        .collect();
    all.sort();
    all.join(" ")
}

/// The paths that are one file.
fn links(root: &Path, paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut files: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    for path in paths {
        if let Ok(found) = fs::symlink_metadata(root.join(path))
            && !found.is_dir()
        {
            files.entry((found.dev(), found.ino())).or_default().push(path.clone());
        }
    }
    let mut all: Vec<Vec<PathBuf>> = files.into_values().filter(|all| all.len() > 1).collect();
    for paths in &mut all {
        paths.sort();
    }
    all.sort();
    all
}

/// FNV-1a: enough to see a difference.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
