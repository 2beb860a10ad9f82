//! Imports at the same time, killed imports, full disks.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::listing::{assert_same, list};
use super::{objects, odd, stages, view, work};
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(removal_leaves_what_others_need),
    test!(imports_at_once),
    test!(imports_of_one_name_at_once),
    test!(an_import_beside_a_collection),
    test!(a_removal_beside_a_collection),
    test!(a_collection_during_an_import),
    test!(a_name_taken_during_an_import),
    test!(holm_killed_during_import),
    test!(import_program_killed),
    test!(disk_full),
    test!(program_missing),
];

/// A directory with a file of each of `contents`.
pub fn directory(sandbox: &Sandbox, name: &str, contents: &[&str]) -> String {
    let dir = work(sandbox).join(name);
    fs::create_dir(&dir).unwrap();
    for (n, content) in contents.iter().enumerate() {
        fs::write(dir.join(n.to_string()), content.repeat(1000)).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

fn removal_leaves_what_others_need(sandbox: &mut Sandbox) {
    let one = directory(sandbox, "one", &["a", "b", "c"]);
    let two = directory(sandbox, "two", &["b", "c", "d"]);
    sandbox.holm(&["base", "import", "one", &one]).ok();
    sandbox.holm(&["base", "import", "two", &two]).ok();
    assert_eq!(objects(sandbox.root()).len(), 4, "equal bodies are kept once");
    let printed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    for base in printed.as_array().unwrap() {
        assert_eq!(base["size_bytes"], 3000, "{printed}");
        assert_eq!(base["own_bytes"], 1000, "{printed}");
    }
    sandbox.holm(&["base", "rm", "one"]).ok();
    assert_eq!(objects(sandbox.root()).len(), 3);
    assert_same(&list(Path::new(&two)), &view::with(sandbox.root(), "two", list));
    // The name and the objects are free again.
    sandbox.holm(&["base", "import", "one", &one]).ok();
    assert_same(&list(Path::new(&one)), &view::with(sandbox.root(), "one", list));
    sandbox.holm(&["base", "rm", "one", "two"]).ok();
    assert_eq!(objects(sandbox.root()), [""; 0]);
}

fn imports_at_once(sandbox: &mut Sandbox) {
    let source = work(sandbox).join("odd");
    odd::make(&source);
    let path = source.to_str().unwrap();
    // Another base is imported and removed, so that objects are collected all the time.
    let other = directory(sandbox, "other", &["x", "y"]);
    let (shared, names) = (&*sandbox, ["a", "b", "c"]);
    thread::scope(|scope| {
        for name in names {
            scope.spawn(move || shared.holm(&["base", "import", name, path]).ok());
        }
        for _ in 0..5 {
            shared.holm(&["base", "import", "other", &other]).ok();
            shared.holm(&["base", "rm", "other"]).ok();
        }
    });
    let mut want = list(&source);
    let third = Path::new("attributes/capable in a namespace");
    let plain = want[Path::new("attributes/capable")].xattrs.clone();
    want.get_mut(third).unwrap().xattrs = plain;
    for name in names {
        let found = view::with(sandbox.root(), name, list);
        assert_same(&want, &found);
    }
    assert_eq!(stages(sandbox.root()), [""; 0]);
}

fn imports_of_one_name_at_once(sandbox: &mut Sandbox) {
    let sources = [directory(sandbox, "one", &["a", "b"]), directory(sandbox, "two", &["b", "c"])];
    let shared = &*sandbox;
    let outcomes = thread::scope(|scope| {
        let import = |source| scope.spawn(move || shared.holm(&["base", "import", "same", source]));
        [import(sources[0].as_str()), import(&sources[1])].map(|thread| thread.join().unwrap())
    });
    let winner = outcomes.iter().position(|o| o.status.success()).expect("one of them wins");
    let [first, second] = outcomes;
    let loser = if winner == 0 { second } else { first };
    loser.refused(&["same", "exists already"]);
    let found = view::with(sandbox.root(), "same", list);
    assert_same(&list(Path::new(&sources[winner])), &found);
    sandbox.holm(&["base", "rm", "same"]).ok();
    assert_eq!(objects(sandbox.root()), [""; 0], "what the loser stored goes too");
}

/// Both have found that a collection is due, and the other is faster.
fn an_import_beside_a_collection(sandbox: &mut Sandbox) {
    let (one, two) = (directory(sandbox, "one", &["a"]), directory(sandbox, "two", &["b"]));
    sandbox.holm(&["base", "import", "one", &one]).ok();
    fs::write(sandbox.root().join("objects/.gc"), "").expect("a request");
    let mut import = Stopped::new(sandbox, &["base", "import", "two", &two], "gc-due");
    sandbox.holm(&["base", "ls"]).ok();
    let (status, said) = import.resume(sandbox);
    assert!(status.success(), "{said}");
    sandbox.holm(&["base", "rm", "one", "two"]).ok();
    assert_eq!(objects(sandbox.root()), [""; 0]);
}

/// A base that is removed after a collection has read its list is collected by the next command.
fn a_removal_beside_a_collection(sandbox: &mut Sandbox) {
    let (one, two) = (directory(sandbox, "one", &["a"]), directory(sandbox, "two", &["b"]));
    sandbox.holm(&["base", "import", "one", &one]).ok();
    sandbox.holm(&["base", "import", "two", &two]).ok();
    fs::write(sandbox.root().join("objects/.gc"), "").expect("a request");
    let mut collecting = Stopped::new(sandbox, &["base", "ls"], "gc-lists");
    sandbox.holm(&["base", "rm", "one"]).ok();
    let (status, said) = collecting.resume(sandbox);
    assert!(status.success(), "{said}");
    sandbox.holm(&["base", "ls"]).ok();
    assert_eq!(objects(sandbox.root()).len(), 1, "that of the base that is left");
    for mark in [".gc", ".gc-running"] {
        assert!(!sandbox.root().join("objects").join(mark).exists(), "{mark}");
    }
}

/// An import that has read half of its archive, and the other half.
struct Half {
    child: Child,
    rest: Vec<u8>,
}

/// Starts an import from a pipe that gives only half of an archive.
fn half_an_import(sandbox: &Sandbox) -> Half {
    // Of a size that all of the first is in the first half.
    let megabytes = ["a", "b", "c"].map(|content| content.repeat(1000));
    let source = directory(sandbox, "half", &megabytes.each_ref().map(String::as_str));
    let mut tar = std::process::Command::new("tar");
    let mut tar = tar
        .args(["-c", "--format=pax", "--sort=name", "-C", &source, "."])
        .output()
        .unwrap()
        .stdout;
    let mut command = sandbox.command();
    command.args(["base", "import", "half", "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let rest = tar.split_off(tar.len() / 2);
    child.stdin.as_mut().unwrap().write_all(&tar).unwrap();
    sandbox.wait_for("the import begins", || (stages(sandbox.root()).len() == 1).then_some(()));
    assert!(!sandbox.holm(&["base", "ls"]).ok().stdout.contains("half"));
    assert_eq!(stages(sandbox.root()).len(), 1, "an import that goes on is left alone");
    Half { child, rest }
}

/// The base whose object an import has found, and so has not stored again, is removed meanwhile.
fn a_collection_during_an_import(sandbox: &mut Sandbox) {
    let other = directory(sandbox, "other", &["a".repeat(1000).as_str()]);
    sandbox.holm(&["base", "import", "other", &other]).ok();
    let Half { mut child, rest } = half_an_import(sandbox);
    sandbox.holm(&["base", "rm", "other"]).ok();
    child.stdin.take().unwrap().write_all(&rest).unwrap();
    let outcome = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{said}");
    let found = view::with(sandbox.root(), "half", list);
    assert_same(&list(&work(sandbox).join("half")), &found);
}

/// Only the last step fails: what the import has stored is removed.
fn a_name_taken_during_an_import(sandbox: &mut Sandbox) {
    let Half { mut child, rest } = half_an_import(sandbox);
    let other = directory(sandbox, "other", &["x"]);
    sandbox.holm(&["base", "import", "half", &other]).ok();
    child.stdin.take().unwrap().write_all(&rest).unwrap();
    let outcome = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(125), "{said}");
    assert!(said.contains("exists already"), "{said}");
    assert_eq!(objects(sandbox.root()).len(), 1, "those of the base that is there");
}

fn holm_killed_during_import(sandbox: &mut Sandbox) {
    let mut child = half_an_import(sandbox).child;
    child.kill().unwrap();
    // The pipe is still open: the import program must not live on it.
    let input = child.stdin.take();
    child.wait().unwrap();
    sandbox.wait_for("the next command cleans up", || {
        sandbox.holm(&["base", "ls"]).ok();
        stages(sandbox.root()).is_empty().then_some(())
    });
    drop(input);
    assert_eq!(objects(sandbox.root()), [""; 0]);
    let source = work(sandbox).join("half");
    sandbox.holm(&["base", "import", "half", source.to_str().unwrap()]).ok();
}

fn import_program_killed(sandbox: &mut Sandbox) {
    let mut child = half_an_import(sandbox).child;
    let _input = child.stdin.take();
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let importer: i32 = children.trim().parse().expect("one child");
    kill_process(Pid::from_raw(importer).unwrap(), Signal::KILL).unwrap();
    let outcome = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(125), "{said}");
    assert!(said.contains("signal: 9"), "{said}");
    assert_eq!(stages(sandbox.root()), [""; 0]);
    assert_eq!(objects(sandbox.root()), [""; 0]);
}

fn disk_full(sandbox: &mut Sandbox) {
    view::private(|| {
        view::mount("tmpfs", &[("size", "6m".into())], sandbox.root());
        sandbox.holm(&["base", "import", "gone", "/no/such/thing"]).refused(&["No such file"]);
        let source = sandbox.root().join("source");
        fs::create_dir(&source).unwrap();
        for n in 0..40_u32 {
            let noise: Vec<u8> =
                (0..20_000_u32).flat_map(|i| (i * 7919 + n).to_le_bytes()).collect();
            fs::write(source.join(n.to_string()), noise).unwrap();
        }
        let path = source.to_str().unwrap();
        sandbox.holm(&["base", "import", "big", path]).refused(&[
            "No space left",
            "keeps 307 KiB free",
            "nothing was kept",
        ]);
        assert_eq!(stages(sandbox.root()), [""; 0]);
        assert_eq!(objects(sandbox.root()), [""; 0]);
        for n in 0..30 {
            fs::remove_file(source.join(n.to_string())).unwrap();
        }
        sandbox.holm(&["base", "import", "big", path]).ok();
        assert_eq!(objects(sandbox.root()).len(), 10);
    });
}

fn program_missing(sandbox: &mut Sandbox) {
    // There is no holm-import beside a copy of holm.
    let copy = work(sandbox).join("holm");
    fs::copy(&sandbox.options.holm, &copy).unwrap();
    let mut alone = std::process::Command::new(&copy);
    alone.env("HOLM_ROOT", sandbox.root()).args(["base", "import", "x", "busybox"]);
    sandbox.run(&mut alone).refused(&["holm-import", "HOLM_IMPORT"]);
}
