//! `holm fsck`: damage is found, told of, and repaired where another copy exists.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_clean_root_has_nothing_wrong),
    test!(what_is_damaged_is_found_and_stored_again),
    test!(what_has_no_other_copy_is_kept_aside),
    test!(a_backup_has_what_the_source_has_lost),
    test!(objects_are_to_be_read_only),
    test!(a_list_that_cannot_be_read_is_found),
    test!(a_changed_image_is_found),
    test!(guests_without_base_or_layer_are_found),
];

/// Exit statuses of fsck(8).
const REPAIRED: i32 = 1;
const LEFT: i32 = 4;
/// What is said of an object, and what was done to it.
type Damage = (&'static str, fn(&Path));
/// Content that is no other file's, and longer than what an image holds itself.
const TEXT: &str = "the quick brown fox jumps over the lazy dog, and then over a second lazy dog\n";

/// A base `box` with a file of known content, and its source.
fn base(sandbox: &Sandbox) -> String {
    let source = system(sandbox, |dir| {
        std::os::unix::fs::symlink("busybox", dir.join("bin/cat")).expect("a link");
        fs::write(dir.join("etc/motd"), TEXT).expect("a file");
    });
    sandbox.holm(&["base", "import", "box", &source]).ok();
    source
}

/// The objects, with their lengths.
fn objects(sandbox: &Sandbox) -> Vec<(PathBuf, u64)> {
    let dirs = fs::read_dir(sandbox.root().join("objects")).expect("the store").flatten();
    dirs.filter(|dir| dir.file_name().len() == 2)
        .flat_map(|dir| fs::read_dir(dir.path()).expect("a directory").flatten())
        .map(|object| (object.path(), object.metadata().expect("an object").len()))
        .collect()
}

fn motd(sandbox: &Sandbox) -> PathBuf {
    let mut found = objects(sandbox).into_iter().filter(|(_, size)| *size == TEXT.len() as u64);
    found.next().expect("an object with the text").0
}

/// Changes one byte without changing the length.
fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("room");
}

/// The result of a check, and its exit status.
fn fsck(sandbox: &Sandbox, more: &[&str]) -> (Value, i32) {
    let outcome = sandbox.holm(&[&["fsck", "--json"], more].concat());
    let status = outcome.status.code().expect("it exits");
    let document = serde_json::from_str(&outcome.stdout);
    (document.unwrap_or_else(|error| panic!("{error}: {outcome:?}")), status)
}

fn a_clean_root_has_nothing_wrong(sandbox: &mut Sandbox) {
    base(sandbox);
    sandbox.holm(&["create", "a", "--base", "box"]).ok();
    let (found, status) = fsck(sandbox, &[]);
    assert_eq!(status, 0, "{found}");
    assert_eq!((&found["ok"], &found["images"]), (&Value::Bool(true), &Value::from(1)), "{found}");
    assert_eq!(found["objects"], objects(sandbox).len(), "{found}");
    sandbox.holm(&["fsck"]).ok().has("nothing is wrong");
}

fn what_is_damaged_is_found_and_stored_again(sandbox: &mut Sandbox) {
    base(sandbox);
    sandbox.holm(&["launch", "a", "--base", "box", "--net", "none", "--", "sleep", "100000"]).ok();
    let damages: [Damage; 3] = [
        ("another digest", |path| flip(path, 7)),
        ("another digest", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).expect("an object");
            file.set_len(5).expect("cut off");
        }),
        ("missing", |path| fs::remove_file(path).expect("an object")),
    ];
    for (reason, damage) in damages {
        let object = motd(sandbox);
        damage(&object);
        let (found, status) = fsck(sandbox, &[]);
        assert_eq!(status, LEFT, "{found}");
        let problem = &found["problems"][0];
        assert!(problem["reason"].as_str().is_some_and(|said| said.contains(reason)), "{found}");
        assert_eq!((&problem["kind"], &problem["bases"][0]), (&"object".into(), &"box".into()));
        let (found, status) = fsck(sandbox, &["--repair"]);
        assert_eq!((status, &found["problems"][0]["repaired"]), (REPAIRED, &Value::Bool(true)));
        assert_eq!(fs::read_to_string(&object).expect("an object"), TEXT);
        assert_eq!(fsck(sandbox, &[]).1, 0);
        sandbox.holm(&["restart", "a"]).ok();
        assert_eq!(exec(sandbox, "a", "cat /etc/motd").ok().stdout, TEXT);
    }
    sandbox.holm(&["kill", "a"]).ok();
}

fn what_has_no_other_copy_is_kept_aside(sandbox: &mut Sandbox) {
    let source = base(sandbox);
    fs::write(Path::new(&source).join("etc/motd"), TEXT.to_uppercase()).expect("a file");
    let object = motd(sandbox);
    flip(&object, 7);
    let (found, status) = fsck(sandbox, &["--repair"]);
    assert_eq!((status, &found["ok"]), (LEFT, &Value::Bool(false)), "{found}");
    let remedy = found["problems"][0]["remedy"].as_str().expect("a remedy").to_owned();
    assert_eq!(remedy, "the source of base box has it no more");
    assert!(!object.exists(), "nobody reads wrong bytes");
    let kept = fs::read_dir(sandbox.root().join("objects/.quarantine")).expect("the quarantine");
    assert_eq!(kept.count(), 1);
    // Where the source is gone, that is said.
    fs::remove_dir_all(&source).expect("the source");
    let (found, status) = fsck(sandbox, &["--repair"]);
    let problem = &found["problems"][0];
    assert_eq!((status, &problem["reason"]), (LEFT, &"it is missing".into()), "{found}");
    let remedy = problem["remedy"].as_str().expect("a remedy");
    assert!(remedy.ends_with("is no longer there"), "{remedy}");
}

fn a_backup_has_what_the_source_has_lost(sandbox: &mut Sandbox) {
    let source = base(sandbox);
    let object = motd(sandbox);
    let backup = sandbox.root().join("backup");
    fs::create_dir(&backup).expect("a directory");
    fs::write(Path::new(&source).join("etc/motd"), "another text").expect("a file");
    flip(&object, 7);
    let from = backup.to_string_lossy().into_owned();
    let (found, status) = fsck(sandbox, &["--repair", "--from", &from]);
    assert_eq!(status, LEFT, "{found}");
    let remedy = found["problems"][0]["remedy"].as_str().expect("a remedy").to_owned();
    assert_eq!(remedy, "the source of base box has it no more");
    fs::write(backup.join("by-another-name"), TEXT).expect("a file");
    let (found, status) = fsck(sandbox, &["--repair", "--from", &from]);
    assert_eq!(status, REPAIRED, "{found}");
    assert_eq!(fs::read_to_string(&object).expect("an object"), TEXT);
    sandbox.holm(&["fsck", "--repair", "--from", "/nowhere"]).refused(&["/nowhere"]);
    sandbox.holm(&["fsck", "--repair", "--from", "-"]).refused(&["name the file"]);
    let usage = sandbox.holm(&["fsck", "--from", &from]);
    assert!(usage.code() == 2 && usage.stderr.contains("--repair"), "{usage}");
}

fn objects_are_to_be_read_only(sandbox: &mut Sandbox) {
    base(sandbox);
    let object = motd(sandbox);
    let damages: [fn(&Path); 2] = [
        |path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("a mode"),
        |path| chown(path, Some(1000), None).expect("an owner"),
    ];
    for damage in damages {
        damage(&object);
        let (found, status) = fsck(sandbox, &[]);
        assert_eq!((status, &found["problems"][0]["bases"][0]), (LEFT, &"box".into()), "{found}");
        assert_eq!(fsck(sandbox, &["--repair"]).1, REPAIRED);
        let now = fs::metadata(&object).expect("an object");
        assert_eq!((now.uid(), now.mode() & 0o7777), (0, 0o444));
        assert_eq!(fsck(sandbox, &[]).1, 0);
    }
}

/// The rest is checked all the same.
fn a_list_that_cannot_be_read_is_found(sandbox: &mut Sandbox) {
    base(sandbox);
    let list = sandbox.root().join("bases/box/objects");
    fs::remove_file(&list).expect("the list");
    fs::create_dir(&list).expect("a directory");
    let (found, status) = fsck(sandbox, &[]);
    assert_eq!((status, &found["problems"][0]["kind"]), (LEFT, &"base".into()), "{found}");
    assert_eq!(found["objects"], objects(sandbox).len(), "{found}");
    fs::remove_dir(&list).expect("the directory");
}

fn a_changed_image_is_found(sandbox: &mut Sandbox) {
    base(sandbox);
    let image = sandbox.root().join("bases/box/image");
    // A byte of the root's inode, whatever that says.
    flip(&image, 1400);
    let (found, status) = fsck(sandbox, &["--repair"]);
    assert_eq!((status, &found["problems"][0]["kind"]), (LEFT, &"base".into()), "{found}");
    let reason = found["problems"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("its digest is another"), "{found}");
    let said = sandbox.holm(&["fsck"]);
    assert_eq!(said.code(), LEFT);
    said.has("holm base rm box");
}

fn guests_without_base_or_layer_are_found(sandbox: &mut Sandbox) {
    base(sandbox);
    for name in ["a", "b"] {
        sandbox.holm(&["create", name, "--base", "box"]).ok();
    }
    let guests = sandbox.root().join("guests");
    fs::remove_dir_all(guests.join("a/disk/upper")).expect("the layer");
    let settings = guests.join("b/guest.toml");
    let text = fs::read_to_string(&settings).expect("settings").replace("\"box\"", "\"gone\"");
    fs::write(&settings, text).expect("settings");
    let (found, status) = fsck(sandbox, &[]);
    assert_eq!(status, LEFT, "{found}");
    let said: Vec<String> = found["problems"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|problem| format!("{}: {}", problem["name"], problem["reason"]))
        .collect();
    assert!(said[0].contains("\"a\": \"its private layer has no directory upper"), "{said:?}");
    assert!(said[1].contains("\"b\": \"no base named gone"), "{said:?}");
}
