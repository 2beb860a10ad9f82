//! Bases: what is kept, what is refused, and what accidents leave.

mod damage;
mod hostile;
mod imports;
mod kept;
mod listing;
mod mirror;
mod odd;
mod pinned;
mod view;

use std::path::Path;
use std::process::Command;

use crate::sandbox::Sandbox;
use crate::test::Test;

/// All tests of bases.
pub fn tests() -> Vec<Test> {
    [kept::TESTS, hostile::TESTS, mirror::TESTS, imports::TESTS, pinned::TESTS, damage::TESTS]
        .concat()
}

/// A directory in the sandbox's root for what a test imports.
fn work(sandbox: &Sandbox) -> std::path::PathBuf {
    let dir = sandbox.root().join("work");
    std::fs::create_dir_all(&dir).expect("a directory in the sandbox");
    dir
}

/// Runs a Debian tool, which must succeed.
#[track_caller]
fn tool(sandbox: &Sandbox, program: &str, args: &[&str]) {
    sandbox.run(Command::new(program).args(args)).ok();
}

/// Objects in the sandbox's own store.
pub fn objects(root: &Path) -> Vec<String> {
    let directories = std::fs::read_dir(root.join("objects")).expect("the store");
    let mut all = Vec::new();
    for directory in directories.flatten().filter(|f| f.path().is_dir()) {
        let entries = std::fs::read_dir(directory.path()).expect("a directory of the store");
        all.extend(entries.flatten().map(|e| e.path().display().to_string()));
    }
    all.sort();
    all
}

/// Directories of imports that run, or were killed.
fn stages(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("bases")).into_iter().flatten().flatten();
    entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n.starts_with('.'))
        .collect()
}
