//! Ends a test whose target does not return.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Far longer than any input takes, also on a busy host.
const PATIENCE: Duration = Duration::from_mins(1);

/// The input that a target works at, and how many came before it.
type Current = Mutex<(u64, Vec<u8>)>;

/// Watches one target.
pub struct Watchdog(Arc<Current>);

impl Watchdog {
    /// Watches until it is dropped.
    pub fn start(target: &'static str) -> Self {
        let current = Arc::new(Current::default());
        let watched = Arc::downgrade(&current);
        std::thread::spawn(move || watch(target, &watched));
        Self(current)
    }

    /// Tells that the target begins to work at an input.
    pub fn begins(&self, input: &[u8]) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 += 1;
        current.1.clear();
        current.1.extend_from_slice(input);
    }
}

fn watch(target: &str, watched: &Weak<Current>) {
    let mut seen = 0;
    loop {
        std::thread::sleep(PATIENCE);
        let Some(current) = watched.upgrade() else { return };
        let current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == seen {
            eprintln!(
                "{}",
                super::failing(target, "an input for 60 s, without an end", &current.1)
            );
            std::process::abort();
        }
        seen = current.0;
    }
}
