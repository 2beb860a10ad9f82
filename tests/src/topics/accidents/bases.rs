//! A base that a guest needs stays, whatever its settings say by now and whatever else goes on.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::exec;
use super::killed::{Stopped, is_stopped};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(stays_under_a_guest_that_has_another_next),
    test!(stays_while_a_rename_goes_on),
    test!(is_held_though_another_had_its_name),
];

/// What the guest has not opened yet is opened in the base's objects only then.
fn stays_under_a_guest_that_has_another_next(sandbox: &mut Sandbox) {
    let text = "not opened before\n".repeat(1000);
    let source = super::system(sandbox, |dir| {
        std::fs::write(dir.join("etc/later"), &text).expect("a file");
    });
    sandbox.holm(&["base", "import", "old", &source]).ok();
    let source = super::system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "new", &source]).ok();
    let launch = ["launch", "box", "--base", "old", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&launch).ok();
    sandbox.holm(&["set", "box", "base=new"]).ok();
    let words = ["base old", "guest box, running", "restart it"];
    sandbox.holm(&["base", "rm", "old"]).refused(&words);
    assert_eq!(exec(sandbox, "box", "cat /etc/later").ok().stdout, text);
    sandbox.holm(&["restart", "box"]).ok();
    sandbox.holm(&["base", "rm", "old"]).ok();
    assert_eq!(exec(sandbox, "box", "test -e /etc/later").code(), 1, "that was the old base");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// A command that waits for a lock, or is done; a test that fails leaves none.
struct Waiting(Child);

impl Waiting {
    fn new(sandbox: &Sandbox, command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut waiting = Self(command.spawn().expect("holm runs"));
        sandbox.wait_for("it waits, or is done", || {
            let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's list");
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

fn go_on(at: Pid) {
    kill_process(at, Signal::CONT).expect("it stands still");
}

/// A look at all guests must not miss the one that changes its name meanwhile.
fn stays_while_a_rename_goes_on(sandbox: &mut Sandbox) {
    let source = super::system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    sandbox.holm(&["create", "a", "--base", "own", "--", "/bin/sleep", "1000"]).ok();
    let mut rm = Stopped::new(sandbox, &["base", "rm", "own"], "base-guests");
    let mut rename = Waiting::new(sandbox, sandbox.command().args(["rename", "a", "b"]));
    go_on(rm.at);
    let ended = sandbox.wait_for("base rm ends", || rm.try_wait());
    rename.ends_well();
    assert_eq!(ended.code(), Some(125), "the base of a guest was removed");
    sandbox.holm(&["start", "b"]).ok();
    sandbox.holm(&["rm", "--force", "b"]).ok();
    sandbox.holm(&["base", "rm", "own"]).ok();
}

/// While a run waits for the removal of its base, another base gets the name: that is the one it needs.
fn is_held_though_another_had_its_name(sandbox: &mut Sandbox) {
    let source = super::system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let mut rm = Stopped::new(sandbox, &["base", "rm", "own"], "base-guests");
    let mut command = sandbox.command_with_fault("HOLM_STOP_AT", "base");
    command.args(["run", "--base", "own", "--net", "none", "--", "/bin/sleep", "0"]);
    let mut run = Waiting::new(sandbox, &mut command);
    let (id, pid) = (run.0.id(), Pid::from_child(&run.0));
    let stands = || sandbox.wait_for("run stands still", || is_stopped(id).then_some(()));
    kill_process(pid, Signal::STOP).expect("our child");
    stands();
    go_on(rm.at);
    assert!(sandbox.wait_for("base rm ends", || rm.try_wait()).success());
    sandbox.holm(&["base", "import", "own", &source]).ok();
    go_on(pid);
    stands();
    sandbox.holm(&["base", "rm", "own"]).refused(&["base own", "runs only once"]);
    go_on(pid);
    run.ends_well();
    sandbox.holm(&["base", "rm", "own"]).ok();
}
