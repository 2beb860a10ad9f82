//! Process ids that were reused: the process that has one now is neither taken for the guest's nor
//! harmed.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use holm::cgroup::{GuestCgroup, Layout, PoolCgroup};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::guest::{exec, idle, pid, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(of_a_monitor).bases(&["busybox"]),
    test!(of_init).bases(&["busybox"]),
    test!(of_a_monitor_with_a_pending_restart).bases(&["busybox"]),
];

/// A process of the host that looks like the guest's monitor but is not.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg0("[holm] box").arg("100000").spawn().expect("a process"))
    }

    #[track_caller]
    fn is_unharmed(&mut self) {
        assert!(self.0.try_wait().expect("our child").is_none(), "it was killed");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Changes the run record of guest `box` to name the process `pid`, as if the process id had been
/// reused.
fn name_in_state(sandbox: &mut Sandbox, whose: &str, pid: u32) {
    let layout = Layout::probe().expect("cgroups");
    let group = format!("holm-{}", sandbox.instance().expect("the root is in use"));
    let cgroup = GuestCgroup::open(&PoolCgroup::new(layout, group), "box")
        .expect("it runs")
        .expect("it runs");
    let bytes = cgroup.record().expect("a state").expect("a state");
    let mut state: Value = serde_json::from_slice(&bytes).expect("JSON");
    state[whose] = json!(pid);
    cgroup.set_record(state.to_string().as_bytes()).expect("an attribute");
}

/// Kills the guest's monitor, and waits until it is reaped.
fn kill_monitor(sandbox: &Sandbox) {
    let monitor = Pid::from_raw(pid(&status(sandbox, "box"), "monitor_pid")).expect("a process id");
    kill_process(monitor, Signal::KILL).expect("it runs");
    sandbox.wait_for("the monitor is reaped", || test_kill_process(monitor).err().map(drop));
}

fn of_a_monitor(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    let mut other = Bystander::new();
    kill_monitor(sandbox);
    name_in_state(sandbox, "monitor", other.0.id());
    // Without its socket such a process would be ended as a monitor that cannot be reached.
    crate::host::wipe_run_directory(sandbox.instance().expect("in use"));
    sandbox.holm(&["start", "box"]).refused(&["already running"]);
    let adopted = status(sandbox, "box");
    assert_eq!(adopted["health"]["monitor"], "replaced", "{adopted}");
    assert_ne!(pid(&adopted, "monitor_pid").unsigned_abs(), other.0.id(), "{adopted}");
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    other.is_unharmed();
    sandbox.holm(&["rm", "--force", "box"]).ok();
    other.is_unharmed();
}

fn of_init(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    let mut other = Bystander::new();
    kill_monitor(sandbox);
    name_in_state(sandbox, "pid", other.0.id());
    sandbox.holm(&["exec", "box", "true"]).refused(&["guest box is not running"]);
    // A guest without its init is cleaned up.
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    other.is_unharmed();
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
    other.is_unharmed();
}

/// A pending restart is on the disk, and may be read after the host has rebooted.
fn of_a_monitor_with_a_pending_restart(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    sandbox.holm(&["stop", "box"]).ok();
    let mut other = Bystander::new();
    let path = sandbox.root().join("guests/box/last");
    let text = std::fs::read_to_string(&path).expect("how it ended");
    let mut last: Value = serde_json::from_str(&text).expect("JSON");
    last["pending"] = json!({ "at": 1, "by": other.0.id(), "by_inode": 1 });
    std::fs::write(&path, last.to_string()).expect("a file");
    assert_eq!(status(sandbox, "box")["state"], "stopped");
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
    other.is_unharmed();
}
