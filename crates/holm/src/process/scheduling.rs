//! What a process inherits from whoever calls Holm, and a guest must not have.

use std::fs;

use holm_sys::process::{leave_real_time, ordinary_scheduling};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

const OOM: &str = "/proc/self/oom_score_adj";

/// Gives up what would favour the guest before the host's processes, and no guest's root could give itself: a command that
/// somebody runs in the background (`nice`, `taskset`) stays there. Where that is refused, things stay as they are.
pub fn drop_scheduling_boost() {
    leave_real_time();
    if getpriority_process(None).is_ok_and(|nice| nice < 0) {
        let _ = setpriority_process(None, 0);
    }
    // A daemon that the kernel's memory killer spares would leave it the host's.
    if fs::read_to_string(OOM).is_ok_and(|score| score.starts_with('-')) {
        let _ = fs::write(OOM, "0");
    }
}

/// Gives up all of it: a guest that stays has nothing to do with whoever started it.
pub fn reset_scheduling() {
    ordinary_scheduling();
    let _ = setpriority_process(None, 0);
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    let _ = sched_setaffinity(None, &all);
    let _ = fs::write(OOM, "0");
}
