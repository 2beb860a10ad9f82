//! A guest that changes a file which others share changes its own copy: each way to change one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::{XattrFlags, lgetxattr, lremovexattr, lsetxattr};

use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] =
    &[test!(who_changes_a_shared_file_gets_its_own), test!(what_sees_that_a_file_is_copied)];

/// The files of the base, and those that the guests have made and that were unified.
const SHARED: [&str; 2] = ["base", "own"];

/// A base with files to change, and the same files, and more, in a directory of the host.
struct Models {
    probe: PathBuf,
    models: PathBuf,
}

impl Models {
    fn new(sandbox: &Sandbox) -> Self {
        let probe = sandbox.probe_directory();
        let models = sandbox.root().join("models");
        let make = |dir: &Path| {
            let mut make = Command::new(probe.join("holm-probe"));
            sandbox.run(make.arg("links-make").arg(dir)).ok();
        };
        for shared in SHARED {
            make(&models.join(shared));
        }
        let source = system(sandbox, |dir| make(&dir.join("t/base")));
        sandbox.holm(&["base", "import", "files", &source]).ok();
        Self { probe, models }
    }

    /// A guest that has the files of both kinds, the second in its private layer.
    fn launch(&self, sandbox: &Sandbox, name: &str) {
        let mounts = [
            format!("mounts+={}:/models:ro", self.models.display()),
            format!("mounts+={}:/probe:ro", self.probe.display()),
        ];
        let settings = ["--net", "none", "--set", &mounts[0], "--set", &mounts[1]];
        let head = ["launch", name, "--base", "files"];
        sandbox.holm(&[&head, &settings[..], &["--", "sleep", "100000"]].concat()).ok();
        exec(sandbox, name, "/probe/holm-probe links-make /t/own").ok();
    }
}

/// All that the host sees of the objects.
fn objects(sandbox: &Sandbox) -> BTreeMap<PathBuf, (u32, u64, i64, i64, u64)> {
    let dirs = std::fs::read_dir(sandbox.root().join("objects")).expect("the store").flatten();
    dirs.filter(|dir| dir.path().is_dir())
        .flat_map(|dir| std::fs::read_dir(dir.path()).expect("a directory").flatten())
        .map(|object| {
            let found = object.metadata().expect("an object");
            let mut sum = DefaultHasher::new();
            std::fs::read(object.path()).expect("an object").hash(&mut sum);
            let time = (found.mtime(), found.mtime_nsec());
            (object.path(), (found.mode(), found.size(), time.0, time.1, sum.finish()))
        })
        .collect()
}

fn compare(sandbox: &Sandbox, name: &str) {
    for shared in SHARED {
        exec(sandbox, name, &format!("/probe/holm-probe compare /t/{shared} /models/{shared}"))
            .ok();
    }
}

fn who_changes_a_shared_file_gets_its_own(sandbox: &mut Sandbox) {
    let models = Models::new(sandbox);
    for name in ["changer", "other"] {
        models.launch(sandbox, name);
    }
    sandbox.holm(&["stop", "changer", "other"]).ok();
    thread::sleep(Duration::from_millis(150));
    let done = sandbox.holm(&["unify", "--all", "--min-age", "0", "--json"]).ok().json();
    let made = std::fs::read_dir(models.models.join("own")).expect("the models").count();
    for guest in done.as_array().expect("an array") {
        assert_eq!(guest["files"], made, "{guest}");
    }
    sandbox.holm(&["start", "changer", "other"]).ok();
    compare(sandbox, "other");
    let before = objects(sandbox);
    assert!(before.len() >= 2 * made, "{} objects", before.len());

    for shared in SHARED {
        exec(sandbox, "changer", &format!("/probe/holm-probe links-change /t/{shared}")).ok();
    }
    compare(sandbox, "other");
    assert!(before == objects(sandbox), "an object has changed");
    attributes_copy_no_data(sandbox, &models);
    // A guest that reads them for the first time now, too.
    sandbox.holm(&["restart", "other"]).ok();
    compare(sandbox, "other");
    capabilities_stay(sandbox);
    sandbox.holm(&["rm", "--force", "changer", "other"]).ok();
}

/// A unification writes the body of a file that only its metadata were copied of, if it has several
/// names. The kernel takes the capabilities of a file that is written to.
fn capabilities_stay(sandbox: &Sandbox) {
    sandbox.holm(&["stop", "changer", "other"]).ok();
    let upper = sandbox.root().join("guests/changer/disk/upper/t");
    // As one that was killed leaves a file with two names, and one of which a name is gone since.
    let interrupted = ["own/link", "own/chmod"].map(|name| upper.join(name));
    for file in &interrupted {
        let value = capability(file).expect("a capability");
        lsetxattr(file, "trusted.overlay.holm.capability", &value, XattrFlags::empty())
            .and_then(|()| lremovexattr(file, "security.capability"))
            .expect("attributes");
    }
    let times: &[u8] = b"1000000000 0 1000000000 5";
    lsetxattr(&interrupted[0], "trusted.overlay.holm.times", times, XattrFlags::empty())
        .expect("attributes");
    // The switch that was killed had left a mark, by which the next start finishes it.
    let mark = sandbox.root().join("guests/changer/unify");
    std::fs::write(&mark, "tried").expect("a mark");
    sandbox.holm(&["start", "changer"]).ok();
    assert!(!mark.exists());
    for file in &interrupted {
        assert!(capability(file).is_some(), "{}", file.display());
    }
    let found = std::fs::symlink_metadata(&interrupted[0]).expect("it is there");
    assert_eq!((found.mtime(), found.mtime_nsec()), (1_000_000_000, 5));
    sandbox.holm(&["stop", "changer"]).ok();
    thread::sleep(Duration::from_millis(150));
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    // The one that has a single name left becomes an object.
    for file in [&interrupted[0], &upper.join("base/link")] {
        let found = std::fs::symlink_metadata(file).expect("it stays in the private layer");
        assert!(found.blocks() > 64, "{}: {found:?}", file.display());
        assert!(capability(file).is_some(), "{}", file.display());
    }
}

fn capability(file: &Path) -> Option<Vec<u8>> {
    let mut value = [0; 24];
    let length = lgetxattr(file, "security.capability", &mut value[..]).ok()?;
    Some(value[..length].to_vec())
}

/// The upper file of one whose attributes have changed has no data: at most a block for attributes.
fn attributes_copy_no_data(sandbox: &Sandbox, models: &Models) {
    let mut list = Command::new(models.probe.join("holm-probe"));
    let names = sandbox.run(list.arg("links-attributes")).ok().stdout;
    assert!(names.lines().count() >= 6, "{names}");
    for shared in SHARED {
        let upper = sandbox.root().join("guests/changer/disk/upper/t").join(shared);
        let kib = |name: &str| {
            std::fs::symlink_metadata(upper.join(name)).map_or(0, |found| found.blocks() / 2)
        };
        for name in names.lines() {
            assert!(kib(name) <= 4, "{shared}/{name}: {} KiB were copied", kib(name));
        }
        assert!(kib("append") > 64, "{shared}/append: {} KiB", kib("append"));
    }
}

/// The figures of docs/guests.md about files of the base.
fn what_sees_that_a_file_is_copied(sandbox: &mut Sandbox) {
    const FILES: [&str; 8] =
        ["watched", "locked", "leased", "link-a", "numbered", "mapped", "acl", "followed"];
    let source = system(sandbox, |dir| {
        let dir = dir.join("t");
        std::fs::create_dir(&dir).expect("a directory");
        for name in FILES {
            std::fs::write(dir.join(name), name.repeat(2000)).expect("a file");
        }
        std::fs::hard_link(dir.join("link-a"), dir.join("link-b")).expect("a link");
    });
    sandbox.holm(&["base", "import", "files", &source]).ok();
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let head = ["launch", "g", "--base", "files", "--net", "none", "--set", &mount];
    sandbox.holm(&[&head[..], &["--", "sleep", "100000"]].concat()).ok();
    exec(sandbox, "g", "/probe/holm-probe copy-up /t").ok();
    sandbox.holm(&["rm", "--force", "g"]).ok();
}
