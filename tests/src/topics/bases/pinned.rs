//! A base that a guest needs cannot be removed.

use crate::topics::accidents::races::{ROUNDS, both};
use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::imports::directory;
use super::objects;
use crate::guest::exec;
use crate::process::{Stopped, is_stopped};
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(stays_until_its_guest_is_restarted_on_another),
    test!(stays_during_a_rename),
    test!(a_start_pins_the_base_that_it_finds),
    test!(one_in_use_stays),
    test!(a_base_in_use_stays),
    test!(create_against_rm_of_the_base),
    test!(set_against_rm_of_the_base),
];

/// A running guest still opens files of the base that it was started on.
fn stays_until_its_guest_is_restarted_on_another(sandbox: &mut Sandbox) {
    let text = "not opened before\n".repeat(1000);
    let source = system(sandbox, |dir| {
        fs::write(dir.join("etc/later"), &text).expect("a file");
    });
    sandbox.holm(&["base", "import", "old", &source]).ok();
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "new", &source]).ok();
    let launch = ["launch", "box", "--base", "old", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&launch).ok();
    sandbox.holm(&["set", "box", "base=new"]).ok();
    let message = ["base old", "guest box, running", "restart it"];
    sandbox.holm(&["base", "rm", "old"]).refused(&message);
    assert_eq!(exec(sandbox, "box", "cat /etc/later").ok().stdout, text);
    sandbox.holm(&["restart", "box"]).ok();
    sandbox.holm(&["base", "rm", "old"]).ok();
    assert_eq!(exec(sandbox, "box", "test -e /etc/later").code(), 1, "that was the old base");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// A command that waits for a lock, or has ended; killed when dropped.
struct Waiting(Child);

impl Waiting {
    fn new(sandbox: &Sandbox, command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut waiting = Self(command.spawn().expect("holm runs"));
        sandbox.wait_for("it waits, or is done", || {
            let locks = fs::read_to_string("/proc/locks").expect("the kernel's list");
            let me = waiting.0.id().to_string();
            let waits = |line: &str| line.contains("-> FLOCK") && line.split(' ').any(|w| w == me);
            let done = waiting.0.try_wait().expect("our child").is_some();
            (done || locks.lines().any(waits)).then_some(())
        });
        waiting
    }

    #[track_caller]
    fn ends_well(&mut self) {
        assert!(self.0.wait().expect("our child").success());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn resume(at: Pid) {
    kill_process(at, Signal::CONT).expect("it is stopped");
}

/// A guest that is being renamed is not overlooked.
fn stays_during_a_rename(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    sandbox.holm(&["create", "a", "--base", "own", "--", "/bin/sleep", "1000"]).ok();
    let mut rm = Stopped::new(sandbox, &["base", "rm", "own"], "base-guests");
    let mut rename = Waiting::new(sandbox, sandbox.command().args(["rename", "a", "b"]));
    resume(rm.at);
    let ended = sandbox.wait_for("base rm ends", || rm.try_wait());
    rename.ends_well();
    assert_eq!(ended.code(), Some(125), "the base of a guest was removed");
    sandbox.holm(&["start", "b"]).ok();
    sandbox.holm(&["rm", "--force", "b"]).ok();
    sandbox.holm(&["base", "rm", "own"]).ok();
}

/// While a run waits for the removal of its base another base gets the name: the run pins that one.
fn a_start_pins_the_base_that_it_finds(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let mut rm = Stopped::new(sandbox, &["base", "rm", "own"], "base-guests");
    let mut command = sandbox.command_with_fault("HOLM_STOP_AT", "base");
    command.args(["run", "--base", "own", "--net", "none", "--", "/bin/sleep", "0"]);
    let mut run = Waiting::new(sandbox, &mut command);
    let (id, pid) = (run.0.id(), Pid::from_child(&run.0));
    let wait_stopped = || sandbox.wait_for("run stops", || is_stopped(id).then_some(()));
    kill_process(pid, Signal::STOP).expect("our child");
    wait_stopped();
    resume(rm.at);
    assert!(sandbox.wait_for("base rm ends", || rm.try_wait()).success());
    sandbox.holm(&["base", "import", "own", &source]).ok();
    resume(pid);
    wait_stopped();
    sandbox.holm(&["base", "rm", "own"]).refused(&["base own", "ephemeral guest"]);
    resume(pid);
    run.ends_well();
    sandbox.holm(&["base", "rm", "own"]).ok();
}

fn one_in_use_stays(sandbox: &mut Sandbox) {
    let source = directory(sandbox, "tree", &["a", "b"]);
    sandbox.holm(&["base", "import", "tree", &source]).ok();
    for guest in ["web", "db"] {
        let dir = sandbox.root().join("guests").join(guest);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("guest.toml"), "base = \"tree\"\n").unwrap();
    }
    sandbox.holm(&["base", "rm", "tree"]).refused(&["tree", "db", "web"]);
    let web = sandbox.root().join("guests/web/guest.toml");
    fs::write(&web, "base = \"tree\nnonsense").unwrap();
    fs::write(sandbox.root().join("guests/db/guest.toml"), "base = \"tree2\"\n").unwrap();
    sandbox.holm(&["base", "rm", "tree"]).refused(&["web"]);
    assert_eq!(objects(sandbox.root()).len(), 2);
    for guest in ["web", "db"] {
        fs::remove_dir_all(sandbox.root().join("guests").join(guest)).unwrap();
    }
    sandbox.holm(&["base", "rm", "tree"]).ok();
    assert_eq!(objects(sandbox.root()), [""; 0]);
    sandbox.holm(&["base", "rm", "tree"]).refused(&["no base named tree"]);
}

fn a_base_in_use_stays(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let args = ["launch", "box", "--base", "own", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&args).ok();
    sandbox.holm(&["base", "rm", "own"]).refused(&["base own", "guest box"]);
    sandbox.holm(&["base", "import", "own", &source]).refused(&["own", "exists already"]);
    exec(sandbox, "box", "test -x /bin/busybox").ok();
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&["base", "rm", "own"]).refused(&["base own", "guest box"]);
    sandbox.holm(&["rm", "box"]).ok();
    let printed = sandbox.holm(&["base", "rm", "own", "--json"]).ok();
    assert_eq!(printed.json(), serde_json::json!({ "version": 1, "name": "own" }));
}

fn create_against_rm_of_the_base(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    for _ in 0..ROUNDS {
        sandbox.holm(&["base", "import", "own", &source]).ok();
        let args = ["create", "box", "--base", "own", "--net", "none", "--", "/bin/sleep", "1000"];
        let [create, rm] = both(sandbox, &args, &["base", "rm", "own"]);
        if create.status.success() {
            // `create` had pinned it, or the guest existed already.
            rm.refused(&["base own", "is used by", "guest"]);
            sandbox.holm(&["start", "box"]).ok();
            sandbox.holm(&["rm", "--force", "box"]).ok();
            sandbox.holm(&["base", "rm", "own"]).ok();
        } else {
            create.refused(&["own", "holm base ls"]);
            rm.ok();
        }
    }
}

/// No guest.toml names the new base yet.
fn set_against_rm_of_the_base(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    for base in ["one", "two"] {
        sandbox.holm(&["base", "import", base, &source]).ok();
    }
    let create = ["create", "box", "--base", "one", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&create).ok();
    let mut set = Stopped::new(sandbox, &["set", "box", "base=two"], "set-base");
    let message = ["base two", "is used by", "being created or changed"];
    sandbox.holm(&["base", "rm", "two"]).refused(&message);
    kill_process(set.at, Signal::CONT).expect("it is stopped");
    assert!(sandbox.wait_for("holm set ends", || set.try_wait()).success());
    sandbox.holm(&["base", "rm", "two"]).refused(&["base two", "guest box", "remove it"]);
    sandbox.holm(&["base", "rm", "one"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
    sandbox.holm(&["base", "rm", "two"]).ok();
}
