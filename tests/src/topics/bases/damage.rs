//! Bases that the disk or a person has damaged: they are named, and importing restores them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::imports::directory;
use super::listing::{assert_same, list};
use super::{objects, view, work};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(importing_again_restores_objects),
    test!(damaged_objects_are_named),
    test!(a_cut_off_image_is_named),
    test!(a_lost_description_is_an_error_in_the_list),
];

/// One shorter, one gone, one with another content of the same length.
fn importing_again_restores_objects(sandbox: &mut Sandbox) {
    let source = directory(sandbox, "source", &["a", "b", "c", "d"]);
    let large = Path::new(&source).join("large");
    fs::write(&large, "0123456789".repeat(300_000)).unwrap();
    File::create(Path::new(&source).join("hollow")).unwrap().set_len(64 << 20).unwrap();
    sandbox.holm(&["base", "import", "one", &source]).ok();
    let all = objects(sandbox.root());
    assert_eq!(all.len(), 6, "{all:?}");
    let lengths = |path: &&String| fs::metadata(path).unwrap().len();
    let small: Vec<&String> = all.iter().filter(|path| lengths(path) == 1000).collect();
    let large = all.iter().find(|path| lengths(path) == 3_000_000).expect("the large one");
    for path in &all {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    File::options().write(true).open(small[0]).unwrap().set_len(10).unwrap();
    fs::remove_file(small[1]).unwrap();
    fs::write(small[2], "!".repeat(1000)).unwrap();
    let mut content = fs::read(large).unwrap();
    content[2_000_000] ^= 1;
    fs::write(large, content).unwrap();
    let said = sandbox.holm(&["base", "import", "two", &source]).ok().stderr;
    assert!(said.contains("3 damaged objects replaced"), "{said}");
    assert_eq!(objects(sandbox.root()), all);
    for name in ["one", "two"] {
        assert_same(&list(Path::new(&source)), &view::with(sandbox.root(), name, list));
    }
    let said = sandbox.holm(&["base", "import", "three", &source]).ok().stderr;
    assert!(!said.contains("damaged"), "{said}");
    let printed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    for base in printed.as_array().unwrap() {
        assert_eq!(base["damage"], Value::Null, "{printed}");
    }
}

/// Checks that `ls` and `inspect` say `parts` of the base `bad`, and nothing of the base `good`.
#[track_caller]
fn named(sandbox: &Sandbox, parts: &[&str]) {
    let has_all = |text: &str| parts.iter().all(|part| text.contains(part));
    let listed = sandbox.holm(&["base", "ls"]).ok();
    assert!(has_all(&listed.stderr) && listed.stderr.contains("base bad is damaged"), "{listed}");
    assert!(listed.stdout.contains("bad") && !listed.stderr.contains("good"), "{listed}");
    let printed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    let of = |name: &str| {
        let all = printed.as_array().unwrap();
        all.iter().find(|base| base["name"] == name).unwrap()["damage"].clone()
    };
    assert!(has_all(of("bad").as_str().unwrap()), "{printed}");
    assert_eq!(of("good"), Value::Null, "{printed}");
    let shown = sandbox.holm(&["base", "inspect", "bad"]).ok();
    assert!(shown.stdout.contains("damage") && has_all(&shown.stdout), "{shown}");
    let shown = sandbox.holm(&["base", "inspect", "good"]).ok();
    assert!(!shown.stdout.contains("damage"), "{shown}");
}

fn two_bases(sandbox: &Sandbox) {
    for (name, contents) in [("bad", ["a", "b"]), ("good", ["b", "c"])] {
        let source = directory(sandbox, name, &contents);
        sandbox.holm(&["base", "import", name, &source]).ok();
    }
}

fn damaged_objects_are_named(sandbox: &mut Sandbox) {
    two_bases(sandbox);
    let list = |name: &str| {
        fs::read_to_string(sandbox.root().join("bases").join(name).join("objects")).unwrap()
    };
    let (bad, good) = (list("bad"), list("good"));
    let own = bad.lines().find(|line| !good.contains(line)).expect("one of its own");
    let own = own.split(' ').next().unwrap();
    let path = sandbox.root().join("objects").join(own);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    let source = work(sandbox).join("bad").display().to_string();
    named(sandbox, &[own, "10 bytes instead of 1000", &source, "restores"]);
    fs::remove_file(&path).unwrap();
    named(sandbox, &[own, "is missing", "restores"]);
    sandbox.holm(&["base", "import", "again", &source]).ok();
    let listed = sandbox.holm(&["base", "ls"]).ok();
    assert_eq!(listed.stderr, "", "{listed}");
}

fn a_cut_off_image_is_named(sandbox: &mut Sandbox) {
    two_bases(sandbox);
    let image = sandbox.root().join("bases/bad/image");
    let length = fs::metadata(&image).unwrap().len();
    for (left, message) in [(length - 1, "cut off"), (100, "something else"), (0, "is none")] {
        File::options().write(true).open(&image).unwrap().set_len(left).unwrap();
        named(sandbox, &[message, &left.to_string(), "holm base rm"]);
    }
}

/// A program that reads the list is told of it too.
fn a_lost_description_is_an_error_in_the_list(sandbox: &mut Sandbox) {
    two_bases(sandbox);
    fs::remove_file(sandbox.root().join("bases/bad/base.toml")).unwrap();
    let listed = sandbox.holm(&["base", "ls", "--json"]).ok();
    assert!(listed.stderr.contains("bad"), "{listed}");
    let printed = listed.json();
    let all = printed.as_array().unwrap();
    assert_eq!(all.len(), 2, "{printed}");
    let lost = all.iter().find(|base| base["name"] == "bad").expect("a document");
    assert_eq!(lost["error"]["code"], "base-damaged", "{printed}");
    sandbox.holm(&["base", "rm", "bad"]).ok();
    fs::write(sandbox.root().join("bases/good/objects"), "nonsense\n").unwrap();
    let printed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    let good = printed.as_array().unwrap().iter().find(|base| base["name"] == "good");
    assert!(good.unwrap()["damage"].as_str().unwrap().contains("line 1"), "{printed}");
}
