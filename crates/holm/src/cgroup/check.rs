//! Checking limits: which values are valid, and what this host can enforce.

use rustix::fs::{Access, CWD, access};
use rustix::io::Errno;

use super::files::read_file;
use super::layout::{Controller, Layout};
use super::limits::{Limits, PERIOD, Setting, parse_list};
use super::{Error, Result};

/// The smallest quota that the kernel accepts, in microseconds (`min_cfs_quota_period`).
const QUOTA_MIN: f64 = 1_000.0;
/// The smallest memory limit. What the kernel charges for any process (page tables, stacks, the
/// first pages of each file it reads) is about 0.5 MiB, and it is charged in batches.
const MEMORY_MIN: u64 = 1 << 20;

impl Limits {
    /// Refuses values that no host could enforce.
    pub fn check(&self) -> Result<()> {
        let invalid =
            |key, value: String, why: &str| Err(Error::Invalid { key, value, why: why.to_owned() });
        match self.cpu_share {
            // The range of cpu.weight.
            Some(share) if !(1..=10_000).contains(&share) => {
                return invalid(
                    "cpu.share",
                    share.to_string(),
                    "a share is 1 to 10000; 100 is normal",
                );
            }
            _ => {}
        }
        match self.cpu_cap {
            Some(cap) if !(cap * f64::from(PERIOD) >= QUOTA_MIN && cap <= 100_000.0) => {
                return invalid("cpu.cap", cap.to_string(), "a cap is 0.01 CPUs (1%) or more");
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
                return invalid(
                    "memory.limit",
                    memory.to_string(),
                    "too small to start anything; 1M is the least, and systemd wants 32M",
                );
            }
            _ => {}
        }
        if self.pids == Some(0) {
            return invalid("pids.limit", "0".to_owned(), "not even init could start");
        }
        Ok(())
    }

    /// Refuses limits that this host cannot enforce. Needs no cgroup, so `create` and `set` can use
    /// it for stopped guests.
    pub fn check_host(&self, layout: &Layout) -> Result<()> {
        self.check()?;
        for setting in self.v1_wanted(layout)? {
            // On v1 the root cgroup has the same files as any other, except for pids.max.
            let Some(root) = layout.v1(setting.controller)? else { continue };
            if setting.controller != Controller::Pids
                && !setting.if_there
                && access(root.join(setting.file), Access::EXISTS) == Err(Errno::NOENT)
            {
                return Err(limit_error(&setting, "", "", Errno::NOENT));
            }
        }
        let Some(set) = &self.cpu_set else { return Ok(()) };
        let path = "/sys/devices/system/cpu/online";
        let online = read_file(CWD, path).map_err(|e| Error::io("read", path, e))?;
        let online = parse_list(online.trim()).unwrap_or_default();
        let wanted = parse_list(set).unwrap_or_default();
        match wanted.iter().find(|cpu| !online.contains(cpu)) {
            None => Ok(()),
            Some(cpu) => {
                let why = format!("there is no CPU {cpu}; this host has {}", online.len());
                Err(Error::Invalid { key: "cpu.set", value: set.clone(), why })
            }
        }
    }

    /// The settings with a value that have to be written to v1. An error for one without any
    /// controller.
    pub(super) fn v1_wanted(&self, layout: &Layout) -> Result<Vec<Setting>> {
        // A default is no reason to look for v1 hierarchies, nor to refuse a start.
        let is_set = |setting: &Setting| match setting.controller {
            Controller::Pids => self.pids.is_some(),
            _ => setting.value.is_some(),
        };
        for setting in self.v2().into_iter().filter(is_set) {
            if layout.hierarchy_of(setting.controller)?.is_none() {
                let name = setting.controller.name();
                let why = format!(
                    "there is no {name} cgroup controller; the kernel was built without it or \
                     disables it (cgroup_disable= on its command line)"
                );
                return Err(Error::Unsupported { key: setting.key, why });
            }
        }
        let memory_on_v1 = !layout.on_v2(Controller::Memory);
        if memory_on_v1 && self.swap.is_some() && self.memory.is_none() {
            let why = "its cgroup v1 limits memory and swap together, so memory.limit has to be \
                       set as well; on a host with cgroup v2 that is not needed";
            return Err(Error::Unsupported { key: "memory.swap", why: why.to_owned() });
        }
        let on_v1 =
            |setting: &Setting| setting.value.is_some() && !layout.on_v2(setting.controller);
        Ok(self.v1().into_iter().filter(on_v1).collect())
    }
}

/// The error for a limit that the kernel refused: it cannot enforce the limit at all, or not this
/// value.
pub(super) fn limit_error(setting: &Setting, path: &str, value: &str, e: Errno) -> Error {
    let key = setting.key;
    let why = match (e, key) {
        (Errno::NOENT, "memory.swap") => {
            "the kernel does not account swap; it needs CONFIG_SWAP, and swapaccount=1 on its command line"
                .to_owned()
        }
        (Errno::NOENT, _) => {
            format!("the kernel's {} controller has no {}", setting.controller.name(), setting.file)
        }
        (Errno::BUSY, "memory.limit" | "memory.swap") => {
            let why = "the guest uses more than that now, and not enough of it can be reclaimed"
                .to_owned();
            return Error::Invalid { key, value: value.to_owned(), why };
        }
        (Errno::RANGE | Errno::INVAL | Errno::ACCESS, "cpu.set") => {
            let why = "not all of these CPUs exist here; \
                       /sys/fs/cgroup/cpuset.cpus.effective or lscpu shows those that do";
            return Error::Invalid { key, value: value.to_owned(), why: why.to_owned() };
        }
        _ => {
            return Error::Limit {
                key,
                value: value.to_owned(),
                path: format!("{path}/{}", setting.file),
                source: e,
            };
        }
    };
    Error::Unsupported { key, why }
}

/// The error for a limit below what a running guest uses.
pub(super) fn below_usage(key: &'static str, value: &str) -> Error {
    let why = "the guest uses more than that now, and not enough of it can be reclaimed; \
               a lower limit would kill its processes";
    Error::Invalid { key, value: value.to_owned(), why: why.to_owned() }
}
