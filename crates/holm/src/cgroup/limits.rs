//! A guest's limits, and the cgroup files that they are written to.

use super::layout::Controller;

/// A guest's limits; `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Weight of CPU time among guests when CPUs are short; 100 is normal.
    pub cpu_share: Option<u32>,
    /// The most CPU time that it gets, in CPUs: 1.5 is one and a half.
    pub cpu_cap: Option<f64>,
    /// The CPUs it may run on, in the kernel's format for lists: `0-1,3`.
    pub cpu_set: Option<String>,
    /// Bytes of memory, page cache and kernel memory included.
    pub memory: Option<u64>,
    /// Bytes of swap beyond it.
    pub swap: Option<u64>,
    /// Processes and threads; `None` is [`PIDS_DEFAULT`] on pure v2, and no limit on hybrid hosts.
    pub pids: Option<u64>,
}

/// The limit on processes and threads of a guest that has none in its settings: a systemd guest has
/// tens, and the host has 32768 for all (`kernel.pid_max`). On hybrid hosts it would cost each
/// start the move into a v1 hierarchy, which is up to a tenth of its time.
const PIDS_DEFAULT: u64 = 4096;

/// The limit on the buffers of TCP sockets, on v1.
const TCP: &str = "memory.kmem.tcp.limit_in_bytes";

/// The period of the CPU cap in microseconds: the kernel's default on v1 and v2.
pub(super) const PERIOD: u32 = 100_000;

/// A limit as the value of a cgroup file.
#[derive(Debug, PartialEq)]
pub(super) struct Setting {
    /// The key in guest.toml.
    pub key: &'static str,
    pub controller: Controller,
    pub file: &'static str,
    /// What to write; `None` for no limit.
    pub value: Option<String>,
    /// Whether a kernel without the file is no reason to refuse the limit.
    pub if_there: bool,
    /// What to write for no limit. For the set of CPUs, the file to copy.
    pub unlimited: &'static str,
}

impl Limits {
    /// The files of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst).
    pub(super) fn v2(&self) -> Vec<Setting> {
        use Controller::{Cpu, Cpuset, Memory, Pids};
        let cap = self.cpu_cap.map(|cap| format!("{} {PERIOD}", quota(cap)));
        vec![
            setting("cpu.share", Cpu, "cpu.weight", self.cpu_share, "100"),
            setting("cpu.cap", Cpu, "cpu.max", cap, "max 100000"),
            setting(
                "cpu.set",
                Cpuset,
                "cpuset.cpus",
                self.cpu_set.clone(),
                "../cpuset.cpus.effective",
            ),
            setting("memory.swap", Memory, "memory.swap.max", self.swap, "max"),
            setting("memory.limit", Memory, "memory.max", self.memory, "max"),
            setting("pids.limit", Pids, "pids.max", Some(self.pids.unwrap_or(PIDS_DEFAULT)), "max"),
        ]
    }

    /// The files of cgroup v1, except `cpuset.mems`. The limit on memory and swap together comes
    /// after that on memory, because it must not be the lower one.
    pub(super) fn v1(&self) -> Vec<Setting> {
        use Controller::{Cpu, Cpuset, Memory, Pids};
        let shares = self.cpu_share.map(|share| (u64::from(share) * 1024 / 100).max(2));
        // `v1_wanted` refuses swap without memory.
        let both = self.swap.and_then(|swap| Some(self.memory?.saturating_add(swap)));
        vec![
            setting("cpu.share", Cpu, "cpu.shares", shares, "1024"),
            setting("cpu.cap", Cpu, "cpu.cfs_quota_us", self.cpu_cap.map(quota), "-1"),
            setting("cpu.set", Cpuset, "cpuset.cpus", self.cpu_set.clone(), "../cpuset.cpus"),
            setting("memory.limit", Memory, "memory.limit_in_bytes", self.memory, "-1"),
            // v1 counts the buffers of TCP sockets apart, and only with a limit on them. The file
            // is deprecated (Linux 6.12), though not gone.
            Setting { if_there: true, ..setting("memory.limit", Memory, TCP, self.memory, "-1") },
            setting("memory.swap", Memory, "memory.memsw.limit_in_bytes", both, "-1"),
            setting("pids.limit", Pids, "pids.max", self.pids, "max"),
        ]
    }
}

fn setting(
    key: &'static str,
    controller: Controller,
    file: &'static str,
    value: Option<impl ToString>,
    unlimited: &'static str,
) -> Setting {
    let value = value.map(|value| value.to_string());
    Setting { key, controller, file, value, if_there: false, unlimited }
}

/// A number of CPUs as microseconds per period. `check` has bounded it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn quota(cap: f64) -> u64 {
    (cap * f64::from(PERIOD)).round() as u64
}

/// The CPU numbers of a list such as `0-1,3`. They are bounded by the kernel's largest `NR_CPUS`.
pub fn parse_list(text: &str) -> Result<Vec<u32>, String> {
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
