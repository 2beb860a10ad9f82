//! The kernel's memory killer.

use rustix::fs::{Mode, OFlags};
use rustix::io::write;

/// Whether the killer should take anybody else before this process, which cleans up after it.
pub fn protect(yes: bool) {
    let path = c"/proc/self/oom_score_adj";
    if let Ok(file) = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        // Where the kernel does not permit it, things stay as they are.
        let _ = write(&file, if yes { b"-900" } else { b"0" });
    }
}
