//! Whether a guest that has ended is started again, by its restart policy.

use std::time::Duration;

use holm_proto::{Ended, How};

use crate::config::Restart;
use crate::record::{LONGEST_WAIT, LastRun};

/// A guest that reboots within this many seconds of its start has not come far: the next restart
/// waits as if the run had failed. Without that a guest that reboots in a loop would keep the host
/// busy with its starts.
const QUICK: u64 = 10;

/// How long to wait before the guest is restarted, and how many restarts in a row that makes;
/// `None` if it stays stopped.
pub(super) fn wait_before_restart(
    last: &LastRun,
    ended: Ended,
    policy: Restart,
) -> Option<(Duration, u32)> {
    if last.asked || ended.is_poweroff() {
        return None;
    }
    if ended.is_reboot() {
        // Somebody may be waiting for it: the first is not delayed, nor is one after a run that
        // lasted.
        let before = if last.lasted < QUICK { last.restarts } else { 0 };
        let wait = before.checked_sub(1).map_or(Duration::ZERO, backoff);
        return Some((wait, before.saturating_add(1)));
    }
    let failed = ended.how != How::Exited(0);
    match policy {
        Restart::No => return None,
        Restart::OnFailure if !failed => return None,
        Restart::OnFailure | Restart::Always => {}
    }
    Some((backoff(last.restarts), last.restarts.saturating_add(1)))
}

/// A second, then twice as long each time.
fn backoff(before: u32) -> Duration {
    Duration::from_secs((1 << before.min(6)).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: Restart, ended: &str, lasted: u64) -> Vec<Option<u64>> {
        let ended = Ended::parse(ended).unwrap();
        let mut last = LastRun { lasted, ..LastRun::default() };
        let mut next = || {
            let (wait, restarts) = wait_before_restart(&last, ended, policy)?;
            last.restarts = restarts;
            Some(wait.as_secs())
        };
        (0..9).map(|_| next()).collect()
    }

    #[test]
    fn each_restart_in_a_row_waits_twice_as_long() {
        let some = |waits: [u64; 9]| waits.map(Some).to_vec();
        let failed = some([1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let quick = some([0, 1, 2, 4, 8, 16, 32, 60, 60]);
        for (policy, ended, lasted, want) in [
            (Restart::No, "killed 1", 0, quick.clone()),
            (Restart::Always, "killed 1", 9, quick),
            (Restart::No, "killed 1", 10, some([0; 9])),
            (Restart::Always, "exited 0", 0, failed.clone()),
            (Restart::OnFailure, "exited 1", 30, failed),
            (Restart::OnFailure, "exited 0", 0, vec![None; 9]),
            (Restart::Always, "killed 2", 0, vec![None; 9]),
            (Restart::No, "exited 1", 0, vec![None; 9]),
        ] {
            assert_eq!(waits(policy, ended, lasted), want, "{policy:?} {ended} after {lasted} s");
        }
    }

    #[test]
    fn a_reboot_of_a_run_that_lasted_begins_anew() {
        let reboot = Ended::parse("killed 1").unwrap();
        let last = LastRun { lasted: 10, restarts: 5, ..LastRun::default() };
        let restart = wait_before_restart(&last, reboot, Restart::No);
        assert_eq!(restart, Some((Duration::ZERO, 1)));
        let asked = LastRun { asked: true, ..last };
        assert_eq!(wait_before_restart(&asked, reboot, Restart::Always), None);
    }
}
