use serde::{Deserialize, Serialize};

use super::now;

/// The longest wait before another start, in seconds.
pub const LONGEST_WAIT: u64 = 60;

/// How a guest's last run ended, kept as `guests/NAME/last`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastRun {
    /// Which run: the inode of its init's pidfd; 0 if that was not known.
    #[serde(default)]
    pub run: u64,
    /// What the kernel said, as the text of `monitor::Ended`.
    pub ended: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// How many processes the kernel has killed because the guest reached its memory limit.
    pub oom_kills: u64,
    /// How often it was started again in a row because of its restart policy.
    pub restarts: u32,
    /// Whether a command asked for the end.
    pub asked: bool,
    /// Why the start that was to follow failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// The start that is to follow. Removing this cancels it.
    #[serde(default)]
    pub pending: Option<PendingRestart>,
}

/// A start that a monitor waits to make. Where another command recorded the end of the run first, the monitor has yet
/// to look whether the guest's restart policy asks for one.
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
    /// Seconds until then. The monitor counts the longest of its waits by `CLOCK_BOOTTIME`, so it is never more.
    pub fn left(&self) -> u64 {
        self.at.saturating_sub(now()).min(LONGEST_WAIT)
    }
}
