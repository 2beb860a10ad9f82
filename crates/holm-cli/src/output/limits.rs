use holm::guest::Summary;
use serde::Serialize;

/// What a guest may use, uses, and has used at most in this run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// Memory, page cache and kernel memory included.
    memory: Memory,
    /// Processes and threads.
    pids: Pids,
    /// CPU time.
    cpu: Cpu,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Memory {
    /// The limit that the kernel enforces, or for a guest that does not run that of guest.toml;
    /// null without one.
    limit_bytes: Option<u64>,
    /// In use now; null if it does not run, or the host does not count it.
    used_bytes: Option<u64>,
    /// The most in this run; null if it does not run, or the host does not count it.
    peak_bytes: Option<u64>,
    /// How many processes the kernel killed in this run because the limit was reached.
    oom_kills: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Pids {
    /// The limit, as for memory.
    limit: Option<u64>,
    /// How many there are now.
    used: Option<u64>,
    /// The most in this run; null on kernels that do not count it.
    peak: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cpu {
    /// The cap on CPU time in CPUs: 1.5 is one and a half; null without one.
    cap_cpus: Option<f64>,
    /// CPU time of this run in microseconds.
    used_usec: Option<u64>,
}

impl From<&Summary> for Limits {
    fn from(guest: &Summary) -> Self {
        let usage = guest.usage.as_ref();
        // For guests that do not run: the kernel knows better.
        let config = guest.config.as_ref().filter(|_| guest.record.is_none());
        Self {
            memory: Memory {
                limit_bytes: usage
                    .and_then(|u| u.memory_limit)
                    .or_else(|| config.and_then(|c| c.memory.limit)),
                used_bytes: usage.and_then(|u| u.memory),
                peak_bytes: usage.and_then(|u| u.memory_peak),
                oom_kills: guest.oom_kills,
            },
            pids: Pids {
                limit: usage
                    .and_then(|u| u.pids_limit)
                    .or_else(|| config.and_then(|c| c.pids.limit)),
                used: usage.and_then(|u| u.pids),
                peak: usage.and_then(|u| u.pids_peak),
            },
            cpu: Cpu {
                cap_cpus: usage.and_then(|u| u.cpu_cap).or_else(|| config.and_then(|c| c.cpu.cap)),
                used_usec: usage.map(|u| u.cpu_usec),
            },
        }
    }
}
