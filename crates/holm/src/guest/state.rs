use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::config::{Arch, Rlimit, Security};
use crate::net;
use crate::pool::Ids;

/// What the host knows about a running guest, kept on its control group.
#[allow(
    clippy::struct_excessive_bools,
    reason = "a record of facts, each independent of the others"
)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Init's process id on the host; 0 while there is none yet.
    pub pid: i32,
    /// The inode of its pidfd, which tells it from later processes with the same number.
    #[serde(default)]
    pub pid_inode: u64,
    /// Its monitor's process id, or that of the `holm run` that waits for it.
    pub monitor: i32,
    /// The same of the monitor.
    #[serde(default)]
    pub monitor_inode: u64,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The same by the clock that nobody sets, in seconds since the host booted.
    #[serde(default)]
    pub started_boot: Option<u64>,
    /// Its base's name.
    pub base: String,
    /// Its ids.
    pub ids: Ids,
    /// Its network.
    pub net: net::Plan,
    /// The signal that asks its init to end; without one only a command inside can.
    pub stop_signal: Option<i32>,
    /// What its processes may do.
    pub security: Security,
    /// The machine that its programs see.
    pub arch: Arch,
    /// Resource limits of its processes, beyond the defaults.
    #[serde(default)]
    pub rlimits: BTreeMap<String, Rlimit>,
    /// Process 1 is Holm's own init, which keeps the console.
    pub minimal: bool,
    /// Init says when the guest is up.
    #[serde(default = "yes")]
    pub notifies: bool,
    /// The guest has no folder: it is gone when it ends (`holm run`).
    #[serde(default)]
    pub ephemeral: bool,
    /// A command has asked it to end: its monitor does not start it again.
    #[serde(default)]
    pub stopping: bool,
    /// Until when that holds, in seconds since the host booted: a command that was killed ends nothing. Without it for
    /// good, as when the guest is being killed.
    #[serde(default)]
    pub stopping_until: Option<u64>,
    /// A monitor was put in the place of one that died, at this time.
    #[serde(default)]
    pub adopted: Option<u64>,
}

impl State {
    /// Whether it is to end, and to stay so.
    pub fn is_stopping(&self) -> bool {
        self.stopping && self.stopping_until.is_none_or(|until| since_boot() <= until)
    }

    /// Seconds since it was started, however often the host's clock was set meanwhile.
    pub fn age(&self) -> u64 {
        match self.started_boot {
            Some(started) => since_boot().saturating_sub(started),
            None => now().saturating_sub(self.started),
        }
    }
}

/// What guests did that were started before there were others.
fn yes() -> bool {
    true
}

/// The longest wait before another start, in seconds.
pub(super) const LONGEST_WAIT: u64 = 60;

/// How a guest's last run ended, kept as `guests/NAME/last`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Last {
    /// Which run: the inode of its init's pidfd; 0 if that was not known.
    #[serde(default)]
    pub run: u64,
    /// What the kernel said, in the words of [`crate::monitor::Ended`].
    pub ended: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// How many processes the kernel has killed because the guest reached its memory limit.
    pub oom_kills: u64,
    /// How often it was started again in a row because of its restart policy.
    pub restarts: u32,
    /// Whether a command asked for the end.
    pub asked: bool,
    /// Why the start that was to follow came to nothing.
    #[serde(default)]
    pub failure: Option<String>,
    /// The start that is to follow. Whoever removes this calls it off.
    #[serde(default)]
    pub pending: Option<Pending>,
}

/// A start that a monitor waits to make. Where another command was faster to note the end, the monitor has yet to look
/// whether the guest's restart policy wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The monitor's process id.
    pub by: i32,
    /// The inode of its pidfd.
    #[serde(default)]
    pub by_inode: u64,
}

impl Pending {
    /// Seconds until then. The monitor counts the longest of its waits by a clock that nobody sets, so it is never more.
    pub fn left(&self) -> u64 {
        self.at.saturating_sub(now()).min(LONGEST_WAIT)
    }
}

/// Seconds since the host booted.
pub(super) fn since_boot() -> u64 {
    u64::try_from(clock_gettime(ClockId::Boottime).tv_sec).unwrap_or(0)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
