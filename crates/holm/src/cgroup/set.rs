//! Changing the limits of a running guest.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::CWD;
use rustix::io::Errno;

use super::check::{below_usage, limit_error};
use super::create::write_v2;
use super::files::{open_dir, read_file, write_file};
use super::guest::GuestCgroup;
use super::layout::{Controller, open_root};
use super::limits::{Limits, Setting};
use super::usage::Figures;
use super::v1::make_v1_dir;
use super::{Error, Result, walk};

/// How long moving the guest's processes may take. Each round moves those that were forked during
/// the one before, until none are left.
const MOVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two rounds that find the same processes. They are ending: the kernel accepts
/// their move but does not perform it, and on a busy host it takes a moment until they are
/// scheduled.
const PAUSE: Duration = Duration::from_millis(1);

impl GuestCgroup {
    /// Sets the guest's limits, and lifts those that are `None`.
    pub fn set_limits(&self, limits: &Limits) -> Result<()> {
        limits.check()?;
        let wanted = limits.v1_wanted(self.layout())?;
        for setting in limits.v2().iter().filter(|setting| self.layout().on_v2(setting.controller))
        {
            if setting.value.is_some() {
                if let (Some(memory), "memory.max") = (limits.memory, setting.file) {
                    self.reclaim_below(memory)?;
                }
                write_v2(&self.pool, &self.path, &self.dir, setting)?;
            } else {
                self.check_written(setting, write_setting(&self.dir, setting))?;
            }
        }
        let settings = limits.v1();
        for root in self.layout().v1_roots()? {
            let here = self.layout().v1_settings_at(root, &settings)?;
            let needed = !self.layout().v1_settings_at(root, &wanted)?.is_empty();
            self.set_v1(root, &here, needed, limits.memory)?;
        }
        Ok(())
    }

    /// Makes the kernel reclaim memory above a new limit, and refuses the limit if that is not
    /// enough. v1 does both itself; v2 would accept the limit and kill processes.
    fn reclaim_below(&self, limit: u64) -> Result<()> {
        let over = || Ok(self.usage(Figures::Current)?.memory.unwrap_or(0).saturating_sub(limit));
        let excess = over()?;
        if excess == 0 {
            return Ok(());
        }
        // The error EAGAIN means that not all could be reclaimed, which is checked next.
        let _ = write_file(&self.dir, "memory.reclaim", &excess.to_string());
        if over()? == 0 { Ok(()) } else { Err(below_usage("memory.limit", &limit.to_string())) }
    }

    /// Refuses a limit below what the guest's processes have allocated before they enter: v1 never
    /// charges that.
    fn check_uncharged(&self, limit: u64) -> Result<()> {
        let uncharged: u64 = self.pids()?.into_iter().map(anonymous_memory).sum();
        if uncharged <= limit {
            Ok(())
        } else {
            Err(below_usage("memory.limit", &limit.to_string()))
        }
    }

    /// Sets the limits of one v1 hierarchy. Moves the guest there if it was not in it.
    fn set_v1(
        &self,
        root: &Path,
        settings: &[&Setting],
        needed: bool,
        memory: Option<u64>,
    ) -> Result<()> {
        let dir = match open_dir(open_root(root)?, &self.path) {
            Ok(dir) => dir,
            Err(Errno::NOENT) if needed => {
                if let (Some(memory), true) =
                    (memory, self.layout().v1(Controller::Memory)? == Some(root))
                {
                    self.check_uncharged(memory)?;
                }
                make_v1_dir(root, self.pool.name(), &self.path)?
            }
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => {
                return Err(Error::io(
                    "open cgroup",
                    root.join(&self.path).display().to_string(),
                    e,
                ));
            }
        };
        self.write_v1(&dir, settings)?;
        // Even if the cgroup existed: an earlier command may have been killed before it had moved
        // all processes.
        if needed { self.move_into(&dir, root) } else { Ok(()) }
    }

    /// The limit on memory must never exceed that on memory and swap together, so which of them has
    /// to be written first depends on the direction of the change. A refused one is tried again
    /// after the others.
    fn write_v1(&self, dir: &OwnedFd, settings: &[&Setting]) -> Result<()> {
        let mut refused = Vec::new();
        for setting in settings {
            match write_setting(dir, setting) {
                Err(Errno::INVAL) => refused.push(*setting),
                result => self.check_written(setting, result)?,
            }
        }
        for setting in refused {
            self.check_written(setting, write_setting(dir, setting))?;
        }
        Ok(())
    }

    /// The error for a limit that could not be written. Lifting a limit that this kernel does not
    /// have is no error, nor is one that only goes with another.
    fn check_written(&self, setting: &Setting, result: rustix::io::Result<()>) -> Result<()> {
        match result {
            Err(Errno::NOENT) if setting.value.is_none() || setting.if_there => Ok(()),
            result => result.map_err(|e| {
                limit_error(
                    setting,
                    &self.path,
                    setting.value.as_deref().unwrap_or(setting.unlimited),
                    e,
                )
            }),
        }
    }

    fn move_into(&self, dir: &OwnedFd, root: &Path) -> Result<()> {
        let fail = |e| {
            Error::io(
                "move the guest's processes to",
                root.join(&self.path).display().to_string(),
                e,
            )
        };
        let deadline = Instant::now() + MOVE_TIMEOUT;
        let mut before = Vec::new();
        loop {
            let there: BTreeSet<i32> = walk::pids(dir).map_err(fail)?.into_iter().collect();
            let left: Vec<i32> =
                self.pids()?.into_iter().filter(|pid| !there.contains(pid)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::ForksTooFast { path: self.path.clone() });
            }
            for pid in left.iter().filter(|pid| self.contains(**pid)) {
                match write_file(dir, "cgroup.procs", &pid.to_string()) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(e) => return Err(fail(e)),
                }
            }
            if left == before {
                std::thread::sleep(PAUSE);
            }
            before = left;
        }
    }
}

impl GuestCgroup {
    /// Whether a process belongs to the guest. Moving each takes milliseconds, so a process id from
    /// the list may have been reused by a process of the host.
    fn contains(&self, pid: i32) -> bool {
        let text = read_file(CWD, &format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        format!("{path}/").contains(&format!("/{}/", self.path))
    }
}

/// The bytes of anonymous memory of a process; 0 if it has ended.
fn anonymous_memory(pid: i32) -> u64 {
    let status = read_file(CWD, &format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = |key| {
        status.lines().find_map(|line: &str| {
            line.strip_prefix(key)?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
    };
    kib("RssAnon:").unwrap_or(0) * 1024
}

/// Writes a limit, or lifts it.
fn write_setting(dir: &OwnedFd, setting: &Setting) -> rustix::io::Result<()> {
    match (&setting.value, setting.controller) {
        (Some(value), _) => write_file(dir, setting.file, value),
        // A set of CPUs cannot be emptied while there are processes (ENOSPC), so it is set to all
        // that the parent has.
        (None, Controller::Cpuset) if read_file(dir, setting.file)?.trim().is_empty() => Ok(()),
        (None, Controller::Cpuset) => {
            write_file(dir, setting.file, read_file(dir, setting.unlimited)?.trim())
        }
        (None, _) => write_file(dir, setting.file, setting.unlimited),
    }
}
