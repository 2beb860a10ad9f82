//! Scheduling that a process inherits from Holm's caller, and that a guest must not have.

use std::fs;

use holm_sys::process::{leave_real_time, ordinary_scheduling};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

const OOM: &str = "/proc/self/oom_score_adj";

/// Drops what favours the guest over the host's processes and guest root could not set itself; a
/// lowered priority (`nice`, `taskset`) stays. Where the kernel refuses, nothing changes.
pub fn drop_scheduling_boost() {
    leave_real_time();
    if getpriority_process(None).is_ok_and(|nice| nice < 0) {
        let _ = setpriority_process(None, 0);
    }
    // A caller with a negative score is spared by the OOM killer, which would kill the host's
    // processes before the guest.
    if fs::read_to_string(OOM).is_ok_and(|score| score.starts_with('-')) {
        let _ = fs::write(OOM, "0");
    }
}

/// Sets all of it to the defaults: a guest that stays does not depend on its caller.
pub fn reset_scheduling() {
    ordinary_scheduling();
    let _ = setpriority_process(None, 0);
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    let _ = sched_setaffinity(None, &all);
    let _ = fs::write(OOM, "0");
}
