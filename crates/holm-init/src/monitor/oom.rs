//! The kernel's OOM killer.

use rustix::fs::{Mode, OFlags};
use rustix::io::write;

/// Has the OOM killer choose almost any other process before this one, which cleans up after those
/// that it kills; or, with `yes` false, undoes that.
pub fn protect(yes: bool) {
    let path = c"/proc/self/oom_score_adj";
    if let Ok(file) = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        // Where the kernel does not permit it, nothing changes.
        let _ = write(&file, if yes { b"-900" } else { b"0" });
    }
}
