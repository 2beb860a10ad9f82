//! Telling `holm` how far the import is: a JSON object per line on standard output.

use std::io::Write;
use std::time::{Duration, Instant};

use holm::store::{Phase, Progress};

/// Often enough for a person.
const INTERVAL: Duration = Duration::from_millis(100);

/// Where progress goes.
pub struct Report {
    last: Option<(Phase, Instant)>,
}

impl Report {
    pub fn new() -> Self {
        Self { last: None }
    }

    /// What is to hear of one phase.
    pub fn of(&mut self, phase: Phase) -> impl FnMut(u64, Option<u64>, &str) {
        move |done, total, note| self.step(phase, done, total, note)
    }

    /// Says it, unless something was said of this phase a moment ago.
    pub fn step(&mut self, phase: Phase, done: u64, total: Option<u64>, note: &str) {
        let recent = self.last.is_some_and(|(p, at)| p == phase && at.elapsed() < INTERVAL);
        if recent {
            return;
        }
        self.last = Some((phase, Instant::now()));
        // Names in an archive may hold anything, also what a terminal obeys.
        let note = note.chars().filter(|c| !c.is_control()).collect();
        let progress = Progress { phase, done, total, note };
        if let Ok(line) = serde_json::to_string(&progress) {
            // If nobody listens any more, the base is still wanted.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }
}
