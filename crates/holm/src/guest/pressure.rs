//! Whether the host is short of CPU time, memory or disk throughput now.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// For which part of a window some task must have waited for the kernel to tell (psi.rst,
/// "Monitoring for pressure thresholds"). That some task waits for a CPU is common, and harms
/// little.
const TRIGGERS: [(&str, u32); 3] =
    [("/proc/pressure/cpu", 2), ("/proc/pressure/io", 5), ("/proc/pressure/memory", 10)];
/// The shortest windows that the kernel takes, with `CAP_SYS_RESOURCE` and without.
const WINDOWS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What the kernel tells of pressure (PSI).
#[derive(Debug)]
pub struct Pressure {
    triggers: Vec<File>,
    window: Duration,
    /// Until then pressure is taken for high.
    high_until: Instant,
}

impl Pressure {
    /// Begins to watch. In the first window, of which nothing is known yet, pressure is high. A
    /// kernel without PSI never tells of any.
    pub fn watch() -> Self {
        for window in WINDOWS {
            let triggers: Vec<File> =
                TRIGGERS.into_iter().filter_map(|trigger| open(trigger, window)).collect();
            if !triggers.is_empty() {
                return Self { triggers, window, high_until: Instant::now() + window };
            }
        }
        Self { triggers: Vec::new(), window: Duration::ZERO, high_until: Instant::now() }
    }

    /// Whether it is high. The kernel tells once in a window.
    pub fn is_high(&mut self) -> bool {
        let mut fds: Vec<PollFd<'_>> =
            self.triggers.iter().map(|trigger| PollFd::new(trigger, PollFlags::PRI)).collect();
        let told = poll(&mut fds, Some(&Timespec::default()));
        if told.is_ok_and(|_| fds.iter().any(|fd| fd.revents().contains(PollFlags::PRI))) {
            self.high_until = Instant::now() + 2 * self.window;
        }
        Instant::now() < self.high_until
    }
}

fn open((file, part): (&str, u32), window: Duration) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut trigger =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(file).ok()?;
    let (threshold, window) = ((window / part).as_micros(), window.as_micros());
    trigger.write_all(format!("some {threshold} {window}\0").as_bytes()).ok()?;
    Some(trigger)
}
