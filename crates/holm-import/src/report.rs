//! Reporting progress to `holm`: one JSON object per line on standard output.

use std::io::Write;
use std::time::{Duration, Instant};

use holm::store::{Phase, Progress};
use serde::Serialize;

/// The shortest time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reports what is worth a word about work that has succeeded.
pub fn line(document: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(document) {
        // The work is done, whoever hears of it.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

/// Reports progress, at a limited rate.
pub struct Report {
    last: Option<(Phase, Instant)>,
}

impl Report {
    pub fn new() -> Self {
        Self { last: None }
    }

    /// A function that reports the progress of one phase.
    pub fn of(&mut self, phase: Phase) -> impl FnMut(u64, Option<u64>, &str) {
        move |done, total, note| self.step(phase, done, total, note)
    }

    /// Reports progress, unless the same phase was reported less than the interval ago.
    pub fn step(&mut self, phase: Phase, done: u64, total: Option<u64>, note: &str) {
        let recent = self.last.is_some_and(|(p, at)| p == phase && at.elapsed() < INTERVAL);
        if recent {
            return;
        }
        self.last = Some((phase, Instant::now()));
        // Names in an archive may contain control characters.
        let note = note.chars().filter(|c| !c.is_control()).collect();
        let progress = Progress { phase, done, total, note };
        if let Ok(line) = serde_json::to_string(&progress) {
            // An error does not matter: the import goes on without reports.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }
}
