//! What a guest uses, and how often it ran out of memory.

use super::Result;
use super::files::{open_dir, read_file};
use super::guest::GuestCgroup;
use super::layout::Controller;
use rustix::fs::CWD;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a guest uses now, and what it may use. `None` for limits that are not set, and where the
/// host has v1, which counts only for guests with such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Bytes of memory, page cache and kernel memory included.
    pub memory: Option<u64>,
    /// Its peak, in bytes.
    pub memory_peak: Option<u64>,
    /// The most that it may be, in bytes.
    pub memory_limit: Option<u64>,
    /// How many of its processes the kernel has killed because the guest, or a cgroup inside, had
    /// reached its memory limit.
    pub oom_kills: u64,
    /// Microseconds of CPU time since the start.
    pub cpu_usec: u64,
    /// The most CPU time that it may have, in CPUs.
    pub cpu_cap: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// The most that there were.
    pub pids_peak: Option<u64>,
    /// The most that there may be.
    pub pids_limit: Option<u64>,
}

/// Which figures of [`Usage`] are read. Each is a file or two, and there may be a thousand guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figures {
    /// Memory, processes and OOM kills as they are now. The others are as if there were none.
    Current,
    /// CPU time, peaks and limits too.
    All,
    /// And what the guest has sent and received, which is no file of its cgroup.
    Traffic,
}

impl GuestCgroup {
    /// What the guest uses now.
    pub fn usage(&self, figures: Figures) -> Result<Usage> {
        let memory = self.controller_dir(Controller::Memory)?;
        let pids = self.controller_dir(Controller::Pids)?;
        let [now, peak, limit] = if self.layout().on_v2(Controller::Memory) {
            ["memory.current", "memory.peak", "memory.max"]
        } else {
            ["memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.limit_in_bytes"]
        };
        let current = Usage {
            memory: self.number(&memory, now)?,
            oom_kills: self.oom_kills_in(&memory)?,
            pids: self.number(&pids, "pids.current")?,
            ..Usage::default()
        };
        if figures == Figures::Current {
            return Ok(current);
        }
        let cpu = self.read("cpu.stat")?.unwrap_or_default();
        Ok(Usage {
            memory_peak: self.number(&memory, peak)?,
            memory_limit: self.number(&memory, limit)?.filter(|limit| *limit < V1_UNLIMITED),
            cpu_usec: field(&cpu, "usage_usec").unwrap_or(0),
            cpu_cap: self.cpu_cap()?,
            pids_peak: self.number(&pids, "pids.peak")?,
            pids_limit: self.number(&pids, "pids.max")?,
            ..current
        })
    }

    /// The cap on CPU time that the kernel enforces, in CPUs.
    fn cpu_cap(&self) -> Result<Option<f64>> {
        let cpu = self.controller_dir(Controller::Cpu)?;
        let text = if self.layout().on_v2(Controller::Cpu) {
            self.read_in(&cpu, "cpu.max")?
        } else {
            let quota = self.read_in(&cpu, "cpu.cfs_quota_us")?;
            let period = self.read_in(&cpu, "cpu.cfs_period_us")?;
            quota.zip(period).map(|(quota, period)| format!("{} {period}", quota.trim()))
        };
        Ok(text.and_then(|text| parse_cap(&text)))
    }

    /// How many processes of the guest the kernel has killed because the guest, or a cgroup inside,
    /// had reached its memory limit.
    pub fn oom_kills(&self) -> Result<u64> {
        self.oom_kills_in(&self.controller_dir(Controller::Memory)?)
    }

    fn oom_kills_in(&self, memory: &ControllerDir<'_>) -> Result<u64> {
        let file = if self.layout().on_v2(Controller::Memory) {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let text = self.read_in(memory, file)?;
        Ok(text.and_then(|text| field(&text, "oom_kill")).unwrap_or(0))
    }

    /// Reads a file of `<pool>/NAME` on v2, if it exists.
    fn read(&self, file: &str) -> Result<Option<String>> {
        self.read_in(&ControllerDir::V2(self.dir.as_fd()), file)
    }

    /// Reads a file; `None` if the controller is not enabled for this guest, or the kernel does not
    /// have the file.
    fn read_in(&self, directory: &ControllerDir<'_>, file: &str) -> Result<Option<String>> {
        let directory = match directory {
            ControllerDir::V2(directory) => *directory,
            ControllerDir::V1(directory) => directory.as_fd(),
            ControllerDir::Missing => return Ok(None),
        };
        match read_file(directory, file) {
            Ok(text) => Ok(Some(text)),
            // The latter while the guest is removed.
            Err(Errno::NOENT | Errno::NODEV) => Ok(None),
            Err(e) => Err(self.io("read", file, e)),
        }
    }

    fn number(&self, directory: &ControllerDir<'_>, file: &str) -> Result<Option<u64>> {
        Ok(self.read_in(directory, file)?.and_then(|text| text.trim().parse().ok()))
    }

    /// `<pool>/NAME` in the hierarchy that has a controller, if it exists there.
    fn controller_dir(&self, controller: Controller) -> Result<ControllerDir<'_>> {
        if self.layout().on_v2(controller) {
            return Ok(ControllerDir::V2(self.dir.as_fd()));
        }
        let Some(root) = self.layout().v1(controller)? else { return Ok(ControllerDir::Missing) };
        match open_dir(CWD, root.join(&self.path)) {
            Ok(dir) => Ok(ControllerDir::V1(dir)),
            Err(Errno::NOENT) => Ok(ControllerDir::Missing),
            Err(e) => Err(self.io("open cgroup", "", e)),
        }
    }
}

/// At least this much is "no limit" in v1: the kernel rounds the largest number down to whole
/// pages.
const V1_UNLIMITED: u64 = 1 << 62;

/// CPUs, from a quota and a period in microseconds; `max` and -1 are no quota.
pub(super) fn parse_cap(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<u64>().ok()?, period.trim().parse::<u32>().ok()?);
    #[allow(clippy::cast_precision_loss, reason = "exact for a hundred million CPUs")]
    let quota = quota as f64;
    (period > 0).then(|| quota / f64::from(period))
}

enum ControllerDir<'a> {
    V2(BorrowedFd<'a>),
    V1(OwnedFd),
    Missing,
}

/// The value of a key in a flat keyed file (`key value` lines).
pub fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
