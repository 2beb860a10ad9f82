//! How long tests took, so that one sees which make a lane slow. They run beside one another, so
//! these are not what a test takes alone.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How many are told.
const TOLD: usize = 15;

static ALL: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Runs a test, and keeps how long it took.
pub fn measure<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = run();
    if let Ok(mut all) = ALL.lock() {
        all.push((begin.elapsed(), name.to_owned()));
    }
    result
}

/// Prints the longest, and how long those of each topic took together.
pub fn tell() {
    let Ok(mut all) = ALL.lock() else { return };
    all.sort_by(|one, other| other.cmp(one));
    let lines: Vec<String> = all
        .iter()
        .take(TOLD)
        .map(|(took, name)| format!("  {:4} s  {name}\n", took.as_secs()))
        .collect();
    eprint!("the longest tests:\n{}", lines.concat());
    let mut topics: BTreeMap<&str, Duration> = BTreeMap::new();
    for (took, name) in &*all {
        *topics.entry(name.split("::").next().unwrap_or(name)).or_default() += *took;
    }
    let topics = topics.iter().map(|(name, took)| format!("{name} {}", took.as_secs()));
    eprintln!("seconds by topic: {}", topics.collect::<Vec<_>>().join(", "));
}
