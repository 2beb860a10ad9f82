//! Power failures: what a command has said is done is on disk. A directory keeps the names in it
//! for sure only when it has been synced, so every name that a command makes, renames or removes
//! below the root must be followed by a sync of its directory before the command ends; and what a
//! command writes into a file, by a sync of the file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::guest::{IDLE, idle};
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(guests_are_on_disk).bases(&["busybox"]),
    test!(bases_are_on_disk),
    test!(a_new_root_is_on_disk),
];

/// Calls that change the names in a directory or the content of a file, and those that sync.
const CALLS: &str = "trace=rename,renameat,renameat2,mkdir,mkdirat,symlink,symlinkat,link,linkat,\
                     unlink,unlinkat,rmdir,open,openat,write,pwrite64,copy_file_range,ftruncate,\
                     fallocate,fsync,fdatasync,syncfs";

fn guests_are_on_disk(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "first");
    synced(sandbox, &[&["create", "box"][..], &IDLE].concat(), 3);
    synced(sandbox, &["set", "box", "memory.limit=64M"], 1);
    synced(sandbox, &["rename", "box", "other"], 2);
    synced(sandbox, &["start", "other"], 1);
    synced(sandbox, &["rm", "--force", "other"], 2);
    synced(sandbox, &[&["launch", "box"][..], &IDLE].concat(), 3);
    // The monitor records the end.
    synced(sandbox, &["stop", "box"], 0);
    synced(sandbox, &["rm", "box"], 2);
    let run = ["run", "--keep", "--name", "box", "--base", "busybox", "--net", "none"];
    synced(sandbox, &[&run[..], &["--", "true"]].concat(), 3);
    synced(sandbox, &["rm", "box"], 2);
    sandbox.holm(&["rm", "first"]).ok();
}

fn bases_are_on_disk(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    synced(sandbox, &["base", "import", "own", &source], 1);
    synced(sandbox, &["base", "rm", "own"], 1);
}

fn a_new_root_is_on_disk(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    let root = sandbox.root().join("new").display().to_string();
    synced(sandbox, &["--root", &root, "base", "import", "own", &source], 3);
    sandbox.holm(&["--root", &root, "release"]).ok();
}

/// Runs `holm ARGS...`, which syncs at least `least` directories, and panics if one is missing.
#[track_caller]
fn synced(sandbox: &Sandbox, args: &[&str], least: usize) {
    let log = sandbox.beside("strace");
    let holm = sandbox.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-q", "-y", "-s", "4096", "-e", "signal=none", "-e", CALLS, "-o"]);
    command.arg(&log);
    if !args.contains(&"import") {
        // Neither the monitor, which stays, nor the guest.
        command.args(["-b", "execve"]);
    }
    command.arg("--").arg(holm.get_program()).args(args);
    command.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    sandbox.run(&mut command).ok();
    let text = fs::read_to_string(&log).expect("a log of strace");
    let _ = fs::remove_file(&log);
    let (unsynced, count) = check(&text, sandbox.root());
    assert!(unsynced.is_empty(), "{args:?}: not synced: {unsynced:?}\n{text}");
    assert!(count >= least, "{args:?}: {count} syncs\n{text}");
}

/// The directories below `root` whose names have changed after their last sync, the files whose
/// content has, and how many syncs there were.
fn check(log: &str, root: &Path) -> (BTreeSet<PathBuf>, usize) {
    let (mut changed, mut syncs) = (BTreeSet::new(), 0);
    for line in log.lines() {
        let Some(Call { name, paths }) = parse(line) else { continue };
        let parents = paths.iter().filter_map(|path| path.parent());
        match (name, paths.as_slice()) {
            ("write" | "pwrite64" | "copy_file_range" | "ftruncate" | "fallocate", [.., path]) => {
                changed.insert(path.clone());
            }
            ("fsync" | "fdatasync", [path]) => {
                syncs += 1;
                changed.remove(path);
            }
            ("syncfs", _) => {
                syncs += 1;
                changed.clear();
            }
            ("rename" | "renameat" | "renameat2", [from, to]) if !is_harmless(to, root) => {
                // What has changed in a directory that is renamed has still to be synced.
                let moved = |path: PathBuf| match path.strip_prefix(from) {
                    Ok(below) => to.join(below).components().collect(),
                    Err(_) => path,
                };
                changed = changed.into_iter().map(moved).collect();
                changed.extend(parents.map(Path::to_owned));
            }
            _ if paths.iter().any(|path| is_old(path)) => {}
            // A renamed file counts by its new name.
            _ if paths.last().is_some_and(|path| is_harmless(path, root)) => {}
            ("unlink" | "unlinkat" | "rmdir", [path]) => {
                changed.remove(path);
                // Objects that come back are collected again.
                let of_guests = parents.filter(|path| !path.starts_with(root.join("objects")));
                changed.extend(of_guests.map(Path::to_owned));
            }
            _ => changed.extend(parents.map(Path::to_owned)),
        }
    }
    changed.retain(|path: &PathBuf| path.strip_prefix(root).is_ok_and(matters));
    (changed, syncs)
}

/// Whether what is there is part of the life of a guest or base. What is in `tmp` is removed or was
/// moved, `lock` and `stage` are empty.
fn matters(below: &Path) -> bool {
    let first = below.components().next();
    let first = first.and_then(|first| match first {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    !matches!(first, Some("tmp" | "lock" | "stage"))
}

/// Whether nothing is lost with a name: a log; minimal init, which is written again; a request to
/// collect objects, which the next removal of a base makes again. Or if one comes back: the notes
/// that a guest has not been started, and how it ended.
fn is_harmless(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root).ok().and_then(Path::to_str).unwrap_or_default();
    match below.split('/').collect::<Vec<_>>()[..] {
        ["flows", ..]
        | ["guests", _, "log" | "new" | "ended"]
        | ["objects", ".gc" | ".gc-running"] => true,
        [name] => name.starts_with("init-"),
        _ => false,
    }
}

/// Whether it is part of a base that is no longer one.
fn is_old(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(".old-"))
}

struct Call<'a> {
    name: &'a str,
    paths: Vec<PathBuf>,
}

/// A successful call in a log: its name, and the paths in its arguments, resolved.
fn parse(line: &str) -> Option<Call<'_>> {
    let (_pid, line) = line.split_once(' ')?;
    let (call, result) = line.trim_start().rsplit_once(" = ")?;
    let (name, args) = call.split_once('(')?;
    // A descriptor or a count of bytes, and not -1.
    if !result.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let opens = name.starts_with("open");
    if opens && !args.contains("O_CREAT") {
        return None;
    }
    let (mut paths, mut directory) = (Vec::new(), PathBuf::new());
    let writes = ["write", "pwrite64", "ftruncate", "fallocate"].contains(&name);
    // What is written may be any text.
    let mut rest = if writes { args.split_once(',')?.0 } else { args };
    // Descriptors are printed as 3</path>, AT_FDCWD too; names in quotes.
    while let Some(at) = rest.find(['<', '"']) {
        let end = if rest[at..].starts_with('<') { '>' } else { '"' };
        let (text, after) = rest[at + 1..].split_once(end)?;
        if end == '>' {
            directory = PathBuf::from(text);
        } else {
            paths.push(directory.join(text));
        }
        rest = after;
    }
    let syncs = ["fsync", "fdatasync", "syncfs"].contains(&name);
    if syncs || writes || name == "copy_file_range" {
        paths = vec![directory];
    }
    // The target of a symbolic link is no name that it makes.
    if name.starts_with("symlink") {
        paths.remove(0);
    }
    Some(Call { name, paths })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_synced_is_found() {
        let log = "\
7 mkdirat(AT_FDCWD</>, \"/r/tmp/new\", 0700) = 0
7 mkdirat(AT_FDCWD</>, \"/r/tmp/new/disk\", 0700) = 0
7 fsync(3</r/tmp/new>) = 0
7 mkdirat(AT_FDCWD</>, \"/r/tmp/new/disk/upper\", 0700) = 0
7 renameat2(AT_FDCWD</>, \"/r/tmp/new\", AT_FDCWD</>, \"/r/guests/a\", RENAME_NOREPLACE) = 0
7 symlinkat(\"../guests/a\", AT_FDCWD</>, \"/r/ids/1\") = 0
7 unlink(\"/r/ids/2\") = -1 ENOENT (No such file or directory)
";
        let (found, syncs) = check(log, Path::new("/r"));
        let found: Vec<&str> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!((found, syncs), (vec!["/r/guests", "/r/guests/a/disk", "/r/ids"], 1));
        let all = "7 fsync(4</r/guests>) = 0\n7 fsync(4</r/ids>) = 0\n";
        let disk = "7 fsync(4</r/guests/a/disk>) = 0\n";
        assert!(check(&[log, all, disk].concat(), Path::new("/r")).0.is_empty());
    }
}
