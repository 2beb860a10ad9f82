use holm::config::Signal;
use holm::monitor::{Ended, How};
use holm::record;
use serde::Serialize;

use super::time::Time;

/// How a guest's last run ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastRun {
    /// When it ended.
    ended_at: Time,
    /// How it ended.
    outcome: Outcome,
    /// The exit status of its init; null if a signal ended it, or it is not known.
    exit_status: Option<u8>,
    /// The signal that killed its init.
    signal: Option<String>,
    /// Whether a command had asked for the end.
    requested: bool,
    /// How many of its processes the kernel killed because it reached its memory limit.
    oom_kills: u64,
    /// Whether that is known: the kernel's count could be read.
    oom_kills_known: bool,
    /// How many starts in a row its restart policy has made, a pending one included.
    restarts: u32,
    /// Why the start that was to follow failed.
    restart_failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// its init exited
    Exited,
    /// a signal killed its init
    Killed,
    /// the guest rebooted itself
    Rebooted,
    /// the guest powered itself off
    PoweredOff,
    /// its init exited with 0, or the guest rebooted or powered itself off: its first monitor had
    /// died, and the new one cannot tell which
    Clean,
    /// it is not known
    Unknown,
}

impl Outcome {
    /// How a run ended, if that is known.
    pub fn new(ended: Option<&Ended>) -> Self {
        match ended {
            Some(ended) if ended.is_reboot() => Self::Rebooted,
            Some(ended) if ended.is_poweroff() => Self::PoweredOff,
            Some(Ended { how: How::Exited(0), adopted: true }) => Self::Clean,
            Some(Ended { how: How::Exited(_), .. }) => Self::Exited,
            Some(Ended { how: How::Killed(_), .. }) => Self::Killed,
            Some(Ended { how: How::Unknown, .. }) | None => Self::Unknown,
        }
    }
}

impl From<&record::LastRun> for LastRun {
    fn from(last: &record::LastRun) -> Self {
        let ended = Ended::parse(&last.ended);
        let outcome = Outcome::new(ended.as_ref());
        let (exit_status, signal) = match ended.map(|ended| ended.how) {
            Some(How::Exited(status)) if outcome == Outcome::Exited => (Some(status), None),
            Some(How::Killed(signal)) if outcome == Outcome::Killed => {
                (None, Some(Signal(i32::from(signal)).to_string()))
            }
            _ => (None, None),
        };
        Self {
            ended_at: Time::new(last.at),
            outcome,
            exit_status,
            signal,
            requested: last.asked,
            oom_kills: last.oom_kills.unwrap_or(0),
            oom_kills_known: last.oom_kills.is_some(),
            restarts: last.restarts,
            restart_failure: last.failure.clone(),
        }
    }
}
