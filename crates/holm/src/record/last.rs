use serde::{Deserialize, Serialize};

use super::now;

/// The longest wait before another start, in seconds.
pub const LONGEST_WAIT: u64 = 60;

/// How a guest's last run ended, kept as `guests/NAME/last`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastRun {
    /// Which run: the inode of its init's pidfd; 0 if unknown.
    #[serde(default)]
    pub run: u64,
    /// How it ended, as the text of `holm_proto::Ended`.
    pub ended: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// How many seconds it lasted.
    #[serde(default)]
    pub lasted: u64,
    /// How many processes the kernel has killed because the guest reached its memory limit; `None`
    /// if that could not be read.
    pub oom_kills: Option<u64>,
    /// How many times in a row it was restarted by its restart policy.
    pub restarts: u32,
    /// Whether a command has stopped it.
    pub asked: bool,
    /// Why the restart that was due failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// The restart that is due. Removing this cancels it.
    #[serde(default)]
    pub pending: Option<PendingRestart>,
}

/// A start that a monitor is waiting to make. If another command recorded the end of the run first,
/// the monitor has yet to apply the guest's restart policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRestart {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The monitor's process id.
    #[serde(rename = "by")]
    pub monitor_pid: i32,
    /// The inode of its pidfd.
    #[serde(rename = "by_inode", default)]
    pub monitor_inode: u64,
}

impl PendingRestart {
    /// Seconds until then, at most [`LONGEST_WAIT`]: the monitor waits by `CLOCK_BOOTTIME`, even if
    /// the wall clock is set.
    pub fn left(&self) -> u64 {
        self.at.saturating_sub(now()).min(LONGEST_WAIT)
    }
}
