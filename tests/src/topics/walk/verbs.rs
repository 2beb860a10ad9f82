use super::strace::{Call, Fault, record, run_with};
use crate::command::Outcome;
use crate::guest::{pid, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::traces::{settled, traces};

pub const TESTS: &[Test] = &[
    test!(create).bases(&["busybox"]),
    test!(exec).bases(&["busybox"]),
    test!(kill).bases(&["busybox"]),
    test!(list).bases(&["busybox"]),
    test!(remove).bases(&["busybox"]),
    test!(rename).bases(&["busybox"]),
    test!(restart).bases(&["busybox"]),
    test!(run).bases(&["busybox"]),
    test!(set_running).bases(&["busybox"]),
    test!(set_stopped).bases(&["busybox"]),
    test!(start).bases(&["busybox"]),
    test!(stop).bases(&["busybox"]),
];

/// The guest that a verb finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guest {
    Absent,
    Stopped,
    Running,
}

/// A verb, the guest that it finds, and whether a running guest must run on.
struct Verb {
    args: &'static [&'static str],
    guest: Guest,
    runs_on: bool,
}

const CREATE: &[&str] = &["create", "box", "--base", "busybox", "--", "sleep", "100000"];

fn create(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: CREATE, guest: Guest::Absent, runs_on: false });
}

fn exec(sandbox: &mut Sandbox) {
    let args = &["exec", "box", "true"];
    walk(sandbox, &Verb { args, guest: Guest::Running, runs_on: true });
}

fn kill(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["kill", "box"], guest: Guest::Running, runs_on: false });
}

fn list(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["ls"], guest: Guest::Running, runs_on: true });
}

fn remove(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["rm", "box"], guest: Guest::Stopped, runs_on: false });
}

fn rename(sandbox: &mut Sandbox) {
    let args = &["rename", "box", "other"];
    walk(sandbox, &Verb { args, guest: Guest::Stopped, runs_on: false });
}

fn restart(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["restart", "box"], guest: Guest::Running, runs_on: false });
}

fn run(sandbox: &mut Sandbox) {
    let args = &["run", "--name", "box", "--base", "busybox", "--", "true"];
    walk(sandbox, &Verb { args, guest: Guest::Absent, runs_on: false });
}

fn set_running(sandbox: &mut Sandbox) {
    let args = &["set", "box", "memory.limit=64M"];
    walk(sandbox, &Verb { args, guest: Guest::Running, runs_on: true });
}

fn set_stopped(sandbox: &mut Sandbox) {
    let args = &["set", "box", "memory.limit=64M"];
    walk(sandbox, &Verb { args, guest: Guest::Stopped, runs_on: false });
}

fn start(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["start", "box"], guest: Guest::Stopped, runs_on: false });
}

fn stop(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { args: &["stop", "box"], guest: Guest::Running, runs_on: false });
}

/// How many faults the usual run samples; `--slow` makes all of them.
const SAMPLES: usize = 4;

fn walk(sandbox: &mut Sandbox, verb: &Verb) {
    // The root now has what it keeps after its first guest.
    prepare(sandbox, Guest::Running);
    tidy(sandbox);
    settled(sandbox);
    let before = left(sandbox);
    prepare(sandbox, verb.guest);
    let (outcome, calls) = record(sandbox, verb.args);
    outcome.ok();
    tidy(sandbox);
    let faults: Vec<(&Call, Fault)> = calls.iter().flat_map(faults_at).collect();
    let step = if sandbox.options.slow { 1 } else { faults.len().div_ceil(SAMPLES) };
    // Other samples each time, so that many runs see what one misses.
    let offset = std::process::id() as usize % step;
    let (mut made, mut failures) = (0, Vec::new());
    for (call, fault) in faults.iter().skip(offset).step_by(step) {
        let what = format!("holm {}, {fault:?} at {} {}", verb.args.join(" "), call.name, call.nth);
        if let Err(failure) = try_fault(sandbox, verb, &before, call, *fault, &mut made) {
            failures.push(format!("{what}: {failure}"));
        }
    }
    println!("walk: holm {}: {made} faults of {}", verb.args.join(" "), faults.len());
    assert!(failures.is_empty(), "{} of {made}:\n{}", failures.len(), failures.join("\n"));
}

fn faults_at(call: &Call) -> Vec<(&Call, Fault)> {
    let errors = call.errors().iter().map(|errno| (call, Fault::Error(errno)));
    std::iter::once((call, Fault::Kill)).chain(errors).collect()
}

/// Makes one fault, and checks what it has done.
fn try_fault(
    sandbox: &Sandbox,
    verb: &Verb,
    before: &[String],
    call: &Call,
    fault: Fault,
    made: &mut usize,
) -> Result<(), String> {
    prepare(sandbox, verb.guest);
    let init = || pid(&status(sandbox, "box"), "init_pid");
    let ran_before = verb.runs_on.then(init);
    let (outcome, hit) = run_with(sandbox, call, fault, verb.args);
    *made += usize::from(hit);
    let checked = check_message(&outcome, fault).and_then(|()| {
        let listed = sandbox.holm(&["ls"]);
        if !listed.status.success() {
            return Err(format!("the next ls failed\n{listed}"));
        }
        if let Some(ran_before) = ran_before {
            let now = status(sandbox, "box");
            if now["init_pid"].as_i64() != Some(i64::from(ran_before)) {
                return Err(format!("the guest does not run on: {now}\n{outcome}"));
            }
        }
        if verb.guest != Guest::Absent && verb.args[0] != "rm" && !is_there(sandbox) {
            return Err(format!("the guest is lost\n{outcome}\n{listed}"));
        }
        Ok(())
    });
    tidy(sandbox);
    let mut now = Vec::new();
    let clean = sandbox.poll_until_limit(|| {
        sandbox.holm(&["ls"]).ok();
        now = left(sandbox);
        (now == before).then_some(())
    });
    checked?;
    clean.ok_or_else(|| format!("left behind: {now:?} instead of {before:?}\n{outcome}"))
}

/// A command that failed says why, in words of its own.
fn check_message(outcome: &Outcome, fault: Fault) -> Result<(), String> {
    let said = outcome.stderr.trim();
    if said.contains("panicked") {
        return Err(format!("it panicked\n{outcome}"));
    }
    match fault {
        Fault::Error(_) if !outcome.status.success() && said.is_empty() => {
            Err(format!("it failed without a word\n{outcome}"))
        }
        _ => Ok(()),
    }
}

fn is_there(sandbox: &Sandbox) -> bool {
    ["box", "other"].iter().any(|name| sandbox.root().join("guests").join(name).exists())
}

/// Makes the guest that a verb is to find.
#[track_caller]
fn prepare(sandbox: &Sandbox, guest: Guest) {
    if guest != Guest::Absent {
        sandbox.holm(CREATE).ok();
    }
    if guest == Guest::Running {
        sandbox.holm(&["start", "box"]).ok();
    }
}

/// Removes whatever guest there is.
fn tidy(sandbox: &Sandbox) {
    for name in ["box", "other"] {
        sandbox.holm(&["rm", "--force", name]);
    }
}

/// What the root has on the host and in its directories. An id that a killed command has allocated
/// is released after ten seconds, by a test of its own.
fn left(sandbox: &Sandbox) -> Vec<String> {
    let mut all = traces(sandbox);
    all.retain(|item| !item.starts_with("ids/"));
    let entries = std::fs::read_dir(sandbox.root()).expect("the root");
    all.extend(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()));
    all.sort();
    all
}
