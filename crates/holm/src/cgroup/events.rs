//! Waiting for `cgroup.events`, and what depends on that: freezing, killing, waiting for the end.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, pread};

use super::files::{read_file, write_file};
use super::guest::GuestCgroup;
use super::{Error, Result, walk};

/// How long freezing may take. A process in uninterruptible sleep freezes when that ends.
const FREEZE: Duration = Duration::from_secs(10);

/// How often the file is read again without an event. The kernel reports changes at most every 10
/// ms, and never reports one that is outstanding when the cgroup is removed.
const INTERVAL: Duration = Duration::from_millis(50);

impl GuestCgroup {
    /// Freezes all processes of the guest, or thaws them. Returns when all are frozen.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        let value = if frozen { "1" } else { "0" };
        write_file(&self.dir, "cgroup.freeze", value)
            .map_err(|e| self.io("write", "cgroup.freeze", e))?;
        // An empty cgroup is never reported as frozen.
        if frozen && !self.wait_event("frozen", true, Some(FREEZE))? {
            let _ = write_file(&self.dir, "cgroup.freeze", "0");
            return Err(Error::Timeout {
                path: self.path.clone(),
                pids: self.pids().unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Kills every process of the guest, including those that it forks meanwhile and frozen ones.
    pub fn kill(&self) -> Result<()> {
        match write_file(&self.dir, "cgroup.kill", "1") {
            // Another command has removed the cgroup, so it was empty.
            Ok(()) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            Err(e) => Err(self.io("write", "cgroup.kill", e)),
        }
    }

    /// Waits until no process is left.
    pub fn wait_empty(&self, timeout: Duration) -> Result<()> {
        if self.wait_event("populated", false, Some(timeout))? {
            return Ok(());
        }
        Err(Error::Timeout { path: self.path.clone(), pids: self.pids()? })
    }

    /// Whether any process is left. Zombies do not count.
    pub fn populated(&self) -> Result<bool> {
        Ok(!self.wait_event("populated", false, Some(Duration::ZERO))?)
    }

    /// Whether any process is left, and whether all are frozen, at one moment.
    pub fn populated_and_frozen(&self) -> Result<(bool, bool)> {
        match read_file(&self.dir, "cgroup.events") {
            Ok(text) => Ok((is_set(&text, "populated"), is_set(&text, "frozen"))),
            // As in `wait_event`.
            Err(Errno::NOENT | Errno::NODEV) => Ok((false, false)),
            Err(e) => Err(self.io("read", "cgroup.events", e)),
        }
    }

    /// Whether all processes are frozen.
    pub fn frozen(&self) -> Result<bool> {
        Ok(self.populated_and_frozen()?.1)
    }

    /// The process ids of the guest's processes on the host.
    pub fn pids(&self) -> Result<Vec<i32>> {
        walk::pids(&self.dir).map_err(|e| self.io("list the processes in", "", e))
    }

    pub(super) fn io(&self, what: &'static str, file: &str, e: Errno) -> Error {
        let path =
            if file.is_empty() { self.path.clone() } else { format!("{}/{file}", self.path) };
        Error::io(what, path, e)
    }

    /// Waits until an event has a value, for `None` without a timeout. Returns whether it had it in
    /// time.
    fn wait_event(&self, event: &str, wanted: bool, timeout: Option<Duration>) -> Result<bool> {
        let fail = |e| self.io("read", "cgroup.events", e);
        let file =
            openat(&self.dir, "cgroup.events", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = match file {
            // The cgroup has been removed or is being removed, so nothing is in it or frozen.
            Err(Errno::NOENT | Errno::NODEV) => return Ok(!wanted),
            file => file.map_err(fail)?,
        };
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            match read_event(&file, event) {
                Ok(value) if value == wanted => return Ok(true),
                // Another command has removed the cgroup, so it was empty.
                Err(Errno::NODEV) => return Ok(!wanted),
                value => value.map_err(fail)?,
            };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            // poll(2) reports changes since the last read, so no event is lost in between.
            let next = Timespec::try_from(left.map_or(INTERVAL, |left| left.min(INTERVAL)));
            match poll(&mut [PollFd::new(&file, PollFlags::PRI)], next.ok().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(fail(e)),
            }
        }
    }
}

fn read_event(file: &OwnedFd, event: &str) -> rustix::io::Result<bool> {
    let mut bytes = [0; 256];
    let len = pread(file, &mut bytes, 0)?;
    let text = std::str::from_utf8(&bytes[..len]).unwrap_or_default();
    Ok(is_set(text, event))
}

fn is_set(text: &str, event: &str) -> bool {
    super::usage::field(text, event) == Some(1)
}
