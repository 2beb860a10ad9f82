//! A guest's limits, and which file of which controller carries each.

use super::layout::Controller;
use super::{Error, Result};

/// What a guest may use; `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Weight of CPU time among guests when CPUs are short; 100 is normal.
    pub cpu_share: Option<u32>,
    /// CPU time at most, in CPUs: 1.5 is one and a half.
    pub cpu_cap: Option<f64>,
    /// CPUs it may run on, as the kernel writes lists: `0-1,3`.
    pub cpu_set: Option<String>,
    /// Bytes of memory, page cache and kernel memory included.
    pub memory: Option<u64>,
    /// Bytes of swap beside it.
    pub swap: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// The period of the CPU cap in microseconds, the kernel's own default in both versions.
const PERIOD: u32 = 100_000;
/// The smallest quota that the kernel takes, in microseconds (`min_cfs_quota_period`).
const QUOTA_MIN: f64 = 1_000.0;

/// Below this no init starts: what the kernel itself charges for a process (page tables, stacks, the
/// first pages of each file it reads) is about 0.5 MiB, and it is charged in batches.
const MEMORY_MIN: u64 = 1 << 20;

/// One value for one file.
#[derive(Debug, PartialEq)]
pub(super) struct Setting {
    /// The key in guest.toml.
    pub key: &'static str,
    pub controller: Controller,
    pub file: &'static str,
    /// What to write; `None`: no limit is wanted.
    pub value: Option<String>,
    /// What to write for no limit.
    pub none: &'static str,
}

impl Limits {
    /// Finds values that no host could enforce.
    pub fn check(&self) -> Result<()> {
        let wrong =
            |key, value: String, why: &str| Err(Error::Invalid { key, value, why: why.to_owned() });
        match self.cpu_share {
            // The range of cpu.weight.
            Some(share) if !(1..=10_000).contains(&share) => {
                return wrong(
                    "cpu.share",
                    share.to_string(),
                    "a share is 1 to 10000; 100 is normal",
                );
            }
            _ => {}
        }
        match self.cpu_cap {
            Some(cap) if !(cap * f64::from(PERIOD) >= QUOTA_MIN && cap <= 100_000.0) => {
                return wrong("cpu.cap", cap.to_string(), "a cap is 0.01 CPUs (1%) or more");
            }
            _ => {}
        }
        if let Some(set) = &self.cpu_set {
            parse_list(set).map_err(|why| Error::Invalid {
                key: "cpu.set",
                value: format!("{set:?}"),
                why,
            })?;
        }
        match self.memory {
            Some(memory) if memory < MEMORY_MIN => {
                return wrong(
                    "memory.limit",
                    memory.to_string(),
                    "too small to start anything; 1M is the least, and systemd wants 32M",
                );
            }
            _ => {}
        }
        if self.pids == Some(0) {
            return wrong("pids.limit", "0".to_owned(), "not even init could start");
        }
        Ok(())
    }

    /// The files of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst).
    pub(super) fn v2(&self) -> Vec<Setting> {
        use Controller::{Cpu, Cpuset, Memory, Pids};
        let cap = self.cpu_cap.map(|cap| format!("{} {PERIOD}", quota(cap)));
        vec![
            setting("cpu.share", Cpu, "cpu.weight", self.cpu_share, "100"),
            setting("cpu.cap", Cpu, "cpu.max", cap, "max 100000"),
            setting("cpu.set", Cpuset, "cpuset.cpus", self.cpu_set.clone(), "\n"),
            setting("memory.swap", Memory, "memory.swap.max", self.swap, "max"),
            setting("memory.limit", Memory, "memory.max", self.memory, "max"),
            setting("pids.limit", Pids, "pids.max", self.pids, "max"),
        ]
    }

    /// The files of cgroup v1 but for `cpuset.mems`. The limit on memory and swap together stands behind
    /// that on memory, which it may not be below.
    pub(super) fn v1(&self) -> Result<Vec<Setting>> {
        use Controller::{Cpu, Cpuset, Memory, Pids};
        let shares = self.cpu_share.map(|share| (u64::from(share) * 1024 / 100).max(2));
        let both = match (self.memory, self.swap) {
            (Some(memory), Some(swap)) => Some(memory.saturating_add(swap)),
            (_, None) => None,
            (None, Some(_)) => {
                let why = "its cgroup v1 limits memory and swap together, so memory.limit has to be set as well; a host on cgroup v2 needs not";
                return Err(Error::Unsupported { key: "memory.swap", why: why.to_owned() });
            }
        };
        Ok(vec![
            setting("cpu.share", Cpu, "cpu.shares", shares, "1024"),
            setting("cpu.cap", Cpu, "cpu.cfs_quota_us", self.cpu_cap.map(quota), "-1"),
            setting("cpu.set", Cpuset, "cpuset.cpus", self.cpu_set.clone(), ""),
            setting("memory.limit", Memory, "memory.limit_in_bytes", self.memory, "-1"),
            setting("memory.swap", Memory, "memory.memsw.limit_in_bytes", both, "-1"),
            setting("pids.limit", Pids, "pids.max", self.pids, "max"),
        ])
    }
}

fn setting(
    key: &'static str,
    controller: Controller,
    file: &'static str,
    value: Option<impl ToString>,
    none: &'static str,
) -> Setting {
    Setting { key, controller, file, value: value.map(|value| value.to_string()), none }
}

/// CPUs as microseconds per period. `check` has bounded the value.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn quota(cap: f64) -> u64 {
    (cap * f64::from(PERIOD)).round() as u64
}

/// The numbers of a list such as `0-1,3`. CPU numbers are bounded by the kernel's largest `NR_CPUS`.
pub(super) fn parse_list(text: &str) -> std::result::Result<Vec<u32>, String> {
    let number = |text: &str| match text.trim().parse::<u32>() {
        Ok(cpu) if cpu < 8192 => Ok(cpu),
        _ => Err(format!("{text:?} is not a CPU number; write a list such as 0-1,3")),
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{part:?} runs backwards"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}
