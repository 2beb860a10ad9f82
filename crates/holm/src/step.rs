//! The steps of a start: what each took, how far a child has come, and faults that tests inject.
//!
//! With `HOLM_TRACE=1` in the environment each step's time is kept, for [`report`]. A build with
//! the feature `fault-injection` also stops itself (SIGSTOP) when it has done the step that
//! `HOLM_STOP_AT` names: tests kill it there and look whether the next command repairs what it
//! left. `HOLM_START_MS` and `HOLM_LOCK_MS` shorten the time limits of a start and of a wait for a
//! lock.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    static STEPS: RefCell<Option<Steps>> = const { RefCell::new(None) };
}

/// Where this process is: address and length of two texts. [`of`] reads them in a copy of this
/// process, where they are at the same addresses; so they cost a start nothing.
static DONE: Text = Text::empty();
static AT: Text = Text::empty();

struct Text([AtomicUsize; 2]);

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
    DONE.set(name);
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

/// Marks what this process works on that may take long, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct At<'a>(PhantomData<&'a str>);

/// Marks what this process works on that may take long.
pub(crate) fn at(object: &str) -> At<'_> {
    AT.set(object);
    At(PhantomData)
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        AT.set("");
    }
}

/// How far a child has come that runs a copy of this program: the last step that it has done, and
/// what it works on since. Each is empty if that is not known.
pub(crate) fn of(pid: i32) -> [String; 2] {
    let memory = File::open(format!("/proc/{pid}/mem"));
    [&DONE, &AT].map(|text| memory.as_ref().map_or(String::new(), |it| text.read_in(it)))
}

impl Text {
    const fn empty() -> Self {
        Self([AtomicUsize::new(0), AtomicUsize::new(0)])
    }

    fn set(&self, text: &str) {
        self.0[0].store(text.as_ptr().addr(), Ordering::Relaxed);
        self.0[1].store(text.len(), Ordering::Relaxed);
    }

    /// The text that another process, whose memory this is, has set.
    fn read_in(&self, memory: &File) -> String {
        const LONGEST: usize = 4096;
        let word = |word: &AtomicUsize| -> io::Result<usize> {
            let mut bytes = [0; size_of::<usize>()];
            memory.read_exact_at(&mut bytes, std::ptr::from_ref(word).addr() as u64)?;
            Ok(usize::from_ne_bytes(bytes))
        };
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; word(&self.0[1])?.min(LONGEST)];
            memory.read_exact_at(&mut bytes, word(&self.0[0])? as u64)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// The steps so far with the time since the step before, in their order; empty unless they are
/// recorded.
pub fn report() -> Vec<(&'static str, Duration)> {
    STEPS.with_borrow(|steps| steps.as_ref().map_or_else(Vec::new, |steps| steps.done.clone()))
}

/// A time limit, or the shorter one in milliseconds that a test injects.
pub(crate) fn limit(variable: &str, usual: Duration) -> Duration {
    let shorter = injected(variable).and_then(|text| text.parse().ok());
    shorter.map_or(usual, Duration::from_millis)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_process_is_can_be_read_from_outside() {
        done("binds");
        let object = String::from("/mnt/dead");
        let marked = at(&object);
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(of(own), ["binds", "/mnt/dead"]);
        drop(marked);
        assert_eq!(of(own), ["binds", ""]);
        assert_eq!(of(0), ["", ""]);
    }
}
