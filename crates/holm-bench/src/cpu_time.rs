//! Where the time of all CPUs went.

use std::fs::read_to_string;

use crate::stats::Summary;

/// Seconds of all CPUs together.
#[derive(Clone, Copy)]
pub struct CpuTime {
    pub kernel: f64,
    pub programs: f64,
    pub idle: f64,
    /// Idle while a task of it waited for a disk.
    pub iowait: f64,
}

impl CpuTime {
    /// Since the host's boot (`proc_stat(5)`).
    pub fn now() -> Result<Self, String> {
        /// `USER_HZ`, which is the same on all machines that Holm runs on.
        const TICKS: f64 = 100.0;
        let text = read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        let all = text.lines().next().unwrap_or_default().split_whitespace();
        let fields: Vec<f64> = all.filter_map(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, ..] = fields[..] else {
            return Err(format!("/proc/stat begins with {:?}", text.lines().next()));
        };
        Ok(Self {
            kernel: (system + irq + softirq) / TICKS,
            programs: (user + nice) / TICKS,
            idle: idle / TICKS,
            iowait: iowait / TICKS,
        })
    }

    /// All of it.
    pub fn all(&self) -> f64 {
        self.kernel + self.programs + self.idle + self.iowait
    }

    /// What went by since `begin`.
    pub fn since(self, begin: Self) -> Self {
        Self {
            kernel: self.kernel - begin.kernel,
            programs: self.programs - begin.programs,
            idle: self.idle - begin.idle,
            iowait: self.iowait - begin.iowait,
        }
    }
}

/// A sentence on the medians of several.
pub fn told(spans: &[CpuTime]) -> String {
    let median =
        |of: fn(&CpuTime) -> f64| Summary::of(&spans.iter().map(of).collect::<Vec<f64>>()).median;
    format!(
        "Seconds of all CPUs meanwhile (medians): {:.2} in the kernel, {:.2} in programs, {:.2} idle.\n",
        median(|it| it.kernel),
        median(|it| it.programs),
        median(|it| it.idle + it.iowait)
    )
}
