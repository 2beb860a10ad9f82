//! What a guest uses, and how often it ran out of memory.

use super::Result;
use super::files::{open_dir, read_file};
use super::guest::GuestCgroup;
use super::layout::{Controller, open_root};
use rustix::io::Errno;

/// What a guest uses now. `None` where the host has v1, which counts only for guests with such a
/// limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// Bytes of memory, page cache and kernel memory included.
    pub memory: Option<u64>,
    /// Its peak, in bytes.
    pub memory_peak: Option<u64>,
    /// Microseconds of CPU time since the start.
    pub cpu_usec: u64,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl GuestCgroup {
    /// What the guest uses now.
    pub fn usage(&self) -> Result<Usage> {
        let cpu = self.read("cpu.stat")?.unwrap_or_default();
        let memory = self.controller_dir(Controller::Memory)?;
        let pids = self.controller_dir(Controller::Pids)?;
        let [now, peak] = if self.layout().on_v2(Controller::Memory) {
            ["memory.current", "memory.peak"]
        } else {
            ["memory.usage_in_bytes", "memory.max_usage_in_bytes"]
        };
        Ok(Usage {
            memory: memory.number(now),
            memory_peak: memory.number(peak),
            cpu_usec: field(&cpu, "usage_usec").unwrap_or(0),
            pids: pids.number("pids.current"),
        })
    }

    /// How many processes of the guest the kernel has killed because the guest, or a cgroup inside,
    /// had reached its memory limit.
    pub fn oom_kills(&self) -> Result<u64> {
        let dir = self.controller_dir(Controller::Memory)?;
        let file = if self.layout().on_v2(Controller::Memory) {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        Ok(dir.read(file).and_then(|text| field(&text, "oom_kill")).unwrap_or(0))
    }

    /// Reads a file of `<pool>/NAME` on v2, if it exists.
    fn read(&self, file: &str) -> Result<Option<String>> {
        match read_file(&self.dir, file) {
            Ok(text) => Ok(Some(text)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.io("read", file, e)),
        }
    }

    /// `<pool>/NAME` in the hierarchy that has a controller, if it exists there.
    fn controller_dir(&self, controller: Controller) -> Result<ControllerDir> {
        let dir = match self.layout().v1(controller) {
            _ if self.layout().on_v2(controller) => open_dir(&self.dir, "."),
            Some(root) => open_dir(open_root(root)?, &self.path),
            None => Err(Errno::NOENT),
        };
        match dir {
            Ok(dir) => Ok(ControllerDir(Some(dir))),
            Err(Errno::NOENT) => Ok(ControllerDir(None)),
            Err(e) => Err(self.io("open cgroup", "", e)),
        }
    }
}

struct ControllerDir(Option<std::os::fd::OwnedFd>);

impl ControllerDir {
    /// The text of a file; `None` if the controller is not enabled for this guest.
    fn read(&self, file: &str) -> Option<String> {
        read_file(self.0.as_ref()?, file).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }
}

/// The value of a key in a flat keyed file (`key value` lines).
pub fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
