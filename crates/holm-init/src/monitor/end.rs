//! How a guest's init ended.

use super::timer::pause;
use holm_proto::{Ended, How};
use holm_sys::bare::{self, Status};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// How often a monitor that is not init's parent asks for its status, which another process has yet
/// to reap, and how long it pauses in between, in milliseconds.
const TRIES: u32 = 100;
const PAUSE: i64 = 20;

/// How the init of `pidfd` ended; `None` while it runs.
pub fn of(pidfd: &OwnedFd) -> Option<Ended> {
    match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => {
            let status = status?;
            let exited = status.exit_status().map(Status::Exited);
            let status = exited.or(status.terminating_signal().map(Status::Killed));
            Some(Ended { how: how(status), adopted: false })
        }
        Err(Errno::CHILD) => Some(Ended { how: how(status_from_pidfd(pidfd)), adopted: true }),
        Err(_) => None,
    }
}

fn how(status: Option<Status>) -> How {
    match status {
        Some(Status::Exited(status)) => How::Exited(low_byte(status)),
        Some(Status::Killed(signal)) => How::Killed(low_byte(signal)),
        None => How::Unknown,
    }
}

fn low_byte(number: i32) -> u8 {
    number.to_le_bytes()[0]
}

/// The kernel gives the status to others only after init's parent, now the host's pid 1, has reaped
/// it.
fn status_from_pidfd(pidfd: &OwnedFd) -> Option<Status> {
    (0..TRIES).find_map(|_| {
        let status = bare::exit_status_of(pidfd.as_fd());
        if status.is_none() {
            pause(PAUSE);
        }
        status
    })
}
