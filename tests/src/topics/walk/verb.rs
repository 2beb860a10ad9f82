//! A verb, and the walk over its system calls.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::check::{check, left};
use super::strace::{Call, Fault, Traced, record, run_with};
use crate::guest::{pid, status};
use crate::sandbox::Sandbox;
use crate::traces::settled;

/// What a verb finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    Absent,
    Stopped,
    Running,
    Frozen,
}

/// A verb, the guest that it finds, and whether a running guest must run on.
pub struct Verb<'a> {
    pub traced: Traced,
    pub args: &'a [&'a str],
    pub guest: Guest,
    pub runs_on: bool,
    /// The guest `box` is made with these settings.
    pub settings: &'a [&'a str],
    /// There is a guest `other` too, stopped.
    pub two: bool,
    /// The base `other` is imported by this command.
    pub import: Option<&'a [&'a str]>,
    /// The layer of the guest `box` has two equal files, [`FILES`].
    pub files: bool,
}

/// The equal files, and the content that they must always have.
pub const FILES: [&str; 2] = ["one", "two"];
pub fn content() -> String {
    "what two files have in common\n".repeat(1000)
}

impl<'a> Verb<'a> {
    pub fn new(args: &'a [&'a str], guest: Guest) -> Self {
        let (traced, settings) = (Traced::Holm, &[][..]);
        let (runs_on, two, files) = (false, false, false);
        Self { traced, args, guest, runs_on, settings, two, import: None, files }
    }

    /// A running guest must run on.
    pub fn harmless(args: &'a [&'a str]) -> Self {
        Self { runs_on: true, ..Self::new(args, Guest::Running) }
    }

    /// The same verb, with another process traced.
    pub fn of(self, traced: Traced) -> Self {
        Self { traced, ..self }
    }

    pub fn removes(&self) -> bool {
        self.args.first() == Some(&"rm")
    }

    /// Makes what the verb is to find.
    #[track_caller]
    fn prepare(&self, sandbox: &Sandbox) {
        self.make(sandbox, self.guest);
        if let ["volume", "rm", name] | ["volume", "set", name, ..] = self.args {
            sandbox.holm(&["volume", "create", name]).ok();
        }
        if let (Some(import), ["base", "rm", ..]) = (self.import, self.args) {
            sandbox.holm(import).ok();
        }
    }

    fn make(&self, sandbox: &Sandbox, guest: Guest) {
        if guest == Guest::Absent {
            return;
        }
        let (head, tail) = (["create", "box", "--base", "busybox"], ["--", "sleep", "100000"]);
        sandbox.holm(&[&head, self.settings, &tail].concat()).ok();
        let upper = sandbox.root().join("guests/box/disk/upper");
        for name in FILES.iter().filter(|_| self.files) {
            std::fs::write(upper.join(name), content()).expect("a file in the layer");
        }
        if self.two {
            sandbox.holm(&["create", "other", "--base", "busybox", "--", "sleep", "100000"]).ok();
        }
        if guest != Guest::Stopped {
            sandbox.holm(&["start", "box"]).ok();
        }
        if guest == Guest::Frozen {
            sandbox.holm(&["freeze", "box"]).ok();
        }
    }
}

/// Removes whatever guest there is, the volume, and the imported base.
fn tidy(sandbox: &Sandbox, verb: &Verb) {
    for name in ["box", "other"] {
        sandbox.holm(&["rm", "--force", name]);
    }
    if verb.files {
        // Nothing has the objects of a unification any more.
        sandbox.holm(&["gc"]);
    }
    if sandbox.root().join("volumes/data").exists() {
        sandbox.holm(&["volume", "rm", "data"]);
    }
    if sandbox.root().join("bases/other").exists() {
        sandbox.holm(&["base", "rm", "other"]);
    }
}

/// How many faults the usual run samples; `--slow` makes all of them.
const SAMPLES: usize = 4;

/// How many failures are enough: a leaving is waited for, each time.
const ENOUGH: usize = 10;

/// Makes faults at the calls of a verb, and panics with what they have done.
pub fn walk(sandbox: &mut Sandbox, verb: &Verb) {
    // The root now has what it keeps after its first guest, or its first import.
    match verb.import {
        Some(import) => drop(sandbox.holm(import).ok()),
        None => verb.make(sandbox, Guest::Running),
    }
    tidy(sandbox, verb);
    settled(sandbox);
    let before = left(sandbox, verb);
    verb.prepare(sandbox);
    let (outcome, calls) = record(sandbox, verb.traced, verb.args);
    outcome.ok();
    tidy(sandbox, verb);
    let faults = faults(&calls);
    let step = if sandbox.options.slow { 1 } else { faults.len().div_ceil(SAMPLES) };
    // Other samples each time, so that many runs see what one misses.
    let offset = std::process::id() as usize % step;
    let (mut made, mut failures) = (0, Vec::new());
    let who = format!("{:?} {}", verb.traced, verb.args.join(" "));
    for (call, fault) in faults.iter().skip(offset).step_by(step) {
        if failures.len() == ENOUGH {
            break;
        }
        // A command that hangs is killed, and panics.
        let tried = catch_unwind(AssertUnwindSafe(|| {
            try_fault(sandbox, verb, &before, call, *fault, &mut made)
        }));
        let panicked = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
            Ok(said) => {
                tidy(sandbox, verb);
                Err(*said)
            }
            Err(panic) => resume_unwind(panic),
        };
        if let Err(failure) = tried.unwrap_or_else(panicked) {
            let failure = format!("{who}, {fault:?} at {} {}: {failure}", call.name, call.nth);
            println!("walk: {failure}");
            failures.push(failure);
        }
    }
    println!("walk: {who}: {made} faults of {}, {} failures", faults.len(), failures.len());
    assert!(failures.is_empty(), "{} of {made}:\n{}", failures.len(), failures.join("\n"));
}

fn faults(calls: &[Call]) -> Vec<(&Call, Fault)> {
    let mut faults = Vec::new();
    let mut before = None;
    for call in calls {
        // A process that is killed where nothing has changed since the last kill leaves the same.
        if !before.is_some_and(Call::changes_nothing) {
            faults.push((call, Fault::Kill));
        }
        faults.extend(call.errors().iter().map(|errno| (call, Fault::Error(errno))));
        before = Some(call);
    }
    faults
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
    verb.prepare(sandbox);
    let init = || pid(&status(sandbox, "box"), "init_pid");
    let ran_before = verb.runs_on.then(init);
    let (outcome, hit) = run_with(sandbox, verb.traced, call, fault, verb.args);
    *made += usize::from(hit);
    let checked = check(sandbox, verb, fault, &outcome, ran_before);
    tidy(sandbox, verb);
    let mut now = Vec::new();
    let clean = sandbox.poll_until_limit(|| {
        sandbox.holm(&["ls"]).ok();
        now = left(sandbox, verb);
        (now == before).then_some(())
    });
    checked?;
    clean.ok_or_else(|| format!("left behind: {now:?} instead of {before:?}\n{outcome}"))
}
