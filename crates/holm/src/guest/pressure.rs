//! Whether the host is short of CPU time, memory or disk throughput now.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// How long tasks must have waited within [`WINDOW`] for the kernel to tell (psi.rst, "Monitoring
/// for pressure thresholds"). That some task waits for a CPU is common, and harms little.
const TRIGGERS: [(&str, Duration); 3] = [
    ("/proc/pressure/cpu", Duration::from_millis(250)),
    ("/proc/pressure/io", Duration::from_millis(100)),
    ("/proc/pressure/memory", Duration::from_millis(50)),
];
/// The shortest window that the kernel takes.
const WINDOW: Duration = Duration::from_millis(500);

/// What the kernel tells of pressure (PSI).
#[derive(Debug)]
pub struct Pressure {
    triggers: Vec<File>,
    /// Until then pressure is taken for high.
    high_until: Instant,
}

impl Pressure {
    /// Begins to watch. In the first window, of which nothing is known yet, pressure is high. A
    /// kernel without PSI never tells of any.
    pub fn watch() -> Self {
        let open = |(file, threshold): (&str, Duration)| {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            let mut trigger =
                OpenOptions::new().read(true).write(true).custom_flags(flags).open(file).ok()?;
            let (threshold, window) = (threshold.as_micros(), WINDOW.as_micros());
            trigger.write_all(format!("some {threshold} {window}\0").as_bytes()).ok()?;
            Some(trigger)
        };
        let triggers: Vec<File> = TRIGGERS.into_iter().filter_map(open).collect();
        let window = if triggers.is_empty() { Duration::ZERO } else { WINDOW };
        Self { triggers, high_until: Instant::now() + window }
    }

    /// Whether it is high. The kernel tells once in a window.
    pub fn is_high(&mut self) -> bool {
        let mut fds: Vec<PollFd<'_>> =
            self.triggers.iter().map(|trigger| PollFd::new(trigger, PollFlags::PRI)).collect();
        let told = poll(&mut fds, Some(&Timespec::default()));
        if told.is_ok_and(|_| fds.iter().any(|fd| fd.revents().contains(PollFlags::PRI))) {
            self.high_until = Instant::now() + 2 * WINDOW;
        }
        Instant::now() < self.high_until
    }
}
