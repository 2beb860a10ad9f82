//! The steps of a start: what each took, and faults that tests inject.
//!
//! With `HOLM_TRACE=1` in the environment each step's time is kept, for [`report`]. A build with
//! the feature `fault-injection` also stops itself (SIGSTOP) when it has done the step that
//! `HOLM_STOP_AT` names: tests kill it there and look whether the next command repairs what it
//! left.

use std::cell::RefCell;
use std::time::{Duration, Instant};

thread_local! {
    static STEPS: RefCell<Option<Steps>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Steps {
    last: Instant,
    done: Vec<(&'static str, Duration)>,
    stop_at: Option<String>,
}

/// Starts to record steps, if the environment says so.
pub fn begin() {
    let stop_at = injected("HOLM_STOP_AT");
    if stop_at.is_some() || std::env::var_os("HOLM_TRACE").is_some() {
        let steps = Steps { last: Instant::now(), done: Vec::new(), stop_at };
        STEPS.with_borrow_mut(|noted| *noted = Some(steps));
    }
}

/// Records that a step is done.
pub fn done(name: &'static str) {
    STEPS.with_borrow_mut(|steps| {
        let Some(steps) = steps else { return };
        let now = Instant::now();
        steps.done.push((name, now - steps.last));
        steps.last = now;
        if steps.stop_at.as_deref() == Some(name) {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::STOP,
            );
        }
    });
}

/// The steps so far with the time since the step before, in their order; empty unless they are
/// recorded.
pub fn report() -> Vec<(&'static str, Duration)> {
    STEPS.with_borrow(|steps| steps.as_ref().map_or_else(Vec::new, |steps| steps.done.clone()))
}

/// The value of an environment variable that injects a fault.
#[cfg(feature = "fault-injection")]
pub(crate) fn injected(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// Nothing: release builds inject no faults, whatever the environment says.
#[cfg(not(feature = "fault-injection"))]
pub(crate) fn injected(_: &str) -> Option<String> {
    None
}
