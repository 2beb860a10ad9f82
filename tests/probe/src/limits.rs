//! Programs that want more than they should get.

use std::process::Command;
use std::time::{Duration, Instant};

/// How long each of many processes lives.
pub const FORKED_SLEEP: Duration = Duration::from_secs(20);

const MIB: usize = 1 << 20;

/// Touches memory, a MiB at a time.
pub fn memory(bytes: u64) {
    let mut held = Vec::new();
    for mib in 1..=bytes / MIB as u64 {
        held.push(vec![1u8; MIB]);
        if mib % 8 == 0 {
            println!("{mib} MiB");
        }
    }
    println!("all of {} MiB", held.len());
}

/// As many processes at once as there may be, at most `count`.
pub fn forks(count: u64) {
    let mut children = Vec::new();
    let mut problem = None;
    for _ in 0..count {
        match Command::new("/proc/self/exe").arg("forks-one").spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                problem = Some(error);
                break;
            }
        }
    }
    println!(
        "{} processes {}",
        children.len(),
        problem.map_or(String::new(), |error| error.to_string())
    );
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Burns for `seconds` of wall-clock time.
pub fn cpu(seconds: u64) {
    use rustix::time::{ClockId, clock_gettime};
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        std::hint::spin_loop();
    }
    let got = clock_gettime(ClockId::ProcessCPUTime);
    println!("{}.{:03} CPU seconds", got.tv_sec, got.tv_nsec / 1_000_000);
}

/// Inotify instances, kept until the input ends.
pub fn inotify(count: u64) {
    use rustix::fs::inotify::{CreateFlags, init};
    let made: Vec<_> = (0..count).map_while(|_| init(CreateFlags::CLOEXEC).ok()).collect();
    println!("{} instances", made.len());
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}
