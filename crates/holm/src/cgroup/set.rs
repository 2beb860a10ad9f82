//! Changing the limits of a guest that runs.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::CWD;
use rustix::io::Errno;

use super::check::{below_use, limit_error};
use super::create::write_v2;
use super::files::{open_dir, read_file, write_file};
use super::guest::GuestCgroup;
use super::layout::{Controller, open_root};
use super::limits::{Limits, Setting};
use super::v1::make_v1_dir;
use super::{Error, Result, walk};

/// How long the guest's processes are listed again and moved: each round catches those that were forked
/// during the one before, and a round without any ends it.
const MOVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two rounds that found the same processes: the kernel accepts the move of one that is ending
/// and lets it end where it is, which on a busy host takes until it is scheduled.
const PAUSE: Duration = Duration::from_millis(1);

impl GuestCgroup {
    /// Makes these the guest's limits; what they do not name is lifted.
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
                self.written(setting, write_setting(&self.dir, setting))?;
            }
        }
        if self.layout().v1_roots().is_empty() {
            return Ok(());
        }
        let settings = limits.v1();
        for root in self.layout().v1_roots() {
            let here: Vec<&Setting> =
                settings.iter().filter(|setting| self.on_v1_root(setting, root)).collect();
            let needed = wanted.iter().any(|setting| self.on_v1_root(setting, root));
            self.set_v1(root, &here, needed, limits.memory)?;
        }
        Ok(())
    }

    /// Before memory is limited below what the guest uses: makes the kernel reclaim what it can.
    /// v1 does that itself and refuses the limit if it cannot; v2 would accept it and kill.
    fn reclaim_below(&self, limit: u64) -> Result<()> {
        let over = || Ok(self.usage()?.memory.unwrap_or(0).saturating_sub(limit));
        let excess = over()?;
        if excess == 0 {
            return Ok(());
        }
        // EAGAIN: it could not reclaim all of it. What counts is what is left.
        let _ = write_file(&self.dir, "memory.reclaim", &excess.to_string());
        if over()? == 0 { Ok(()) } else { Err(below_use("memory.limit", &limit.to_string())) }
    }

    /// v1 does not charge what a process allocated before it joined, so a limit below that would not hold.
    fn check_uncharged(&self, limit: u64) -> Result<()> {
        let uncharged: u64 = self.pids()?.into_iter().map(anonymous_memory).sum();
        if uncharged <= limit { Ok(()) } else { Err(below_use("memory.limit", &limit.to_string())) }
    }

    fn on_v1_root(&self, setting: &Setting, root: &Path) -> bool {
        !self.layout().on_v2(setting.controller)
            && self.layout().v1(setting.controller) == Some(root)
    }

    /// Sets the limits of one v1 hierarchy, which the guest joins now if it was not in it.
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
                    (memory, self.layout().v1(Controller::Memory) == Some(root))
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
        // Also into one that is there: an earlier command may have been killed before all were moved.
        if needed { self.move_into(&dir, root) } else { Ok(()) }
    }

    /// The limit on memory may at no moment exceed that on memory and swap together, so which of the two is written first
    /// depends on the direction: what is refused at first is tried again after the others.
    fn write_v1(&self, dir: &OwnedFd, settings: &[&Setting]) -> Result<()> {
        let mut refused = Vec::new();
        for setting in settings {
            match write_setting(dir, setting) {
                Err(Errno::INVAL) => refused.push(*setting),
                result => self.written(setting, result)?,
            }
        }
        for setting in refused {
            self.written(setting, write_setting(dir, setting))?;
        }
        Ok(())
    }

    /// The error of a limit that could not be written. One that is to be lifted and that this kernel does not have is none.
    fn written(&self, setting: &Setting, result: rustix::io::Result<()>) -> Result<()> {
        match result {
            Err(Errno::NOENT) if setting.value.is_none() => Ok(()),
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
    /// Whether a process is the guest's. Moving one takes milliseconds, so a listed process id may be a process of the
    /// host by the time it is its turn.
    fn contains(&self, pid: i32) -> bool {
        let text = read_file(CWD, &format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        format!("{path}/").contains(&format!("/{}/", self.path))
    }
}

/// Bytes of anonymous memory of a process; 0 when it has ended.
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
        // With processes inside, a set of CPUs cannot be emptied (ENOSPC): all that the parent has, then.
        (None, Controller::Cpuset) if read_file(dir, setting.file)?.trim().is_empty() => Ok(()),
        (None, Controller::Cpuset) => {
            write_file(dir, setting.file, read_file(dir, setting.unlimited)?.trim())
        }
        (None, _) => write_file(dir, setting.file, setting.unlimited),
    }
}
