use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use holm_sys::process::{CloneResult, clone, exit_now};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::identity::ended_within;

/// How long a killed process may take to end.
pub const KILLED: Duration = Duration::from_secs(5);

/// Runs `work` in a child, in the new `namespaces` and, if given, in the cgroup, so that what it
/// changes ends with it; returns what `work` returns.
pub fn run_in_child(
    namespaces: u64,
    cgroup: Option<BorrowedFd<'_>>,
    work: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    let (reader, writer) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("no pipe: {errno}"))?;
    match clone(namespaces, cgroup).map_err(|error| error.to_string())? {
        CloneResult::Child(_) => {
            drop(reader);
            let result = match work() {
                Ok(text) => format!("+{text}"),
                Err(text) => format!("-{text}"),
            };
            let _ = File::from(writer).write_all(result.as_bytes());
            exit_now(0)
        }
        CloneResult::Parent { pidfd, .. } => {
            drop(writer);
            let mut result = String::new();
            let read = File::from(reader).read_to_string(&mut result);
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            read.map_err(|error| error.to_string())?;
            match (result.strip_prefix('+'), result.strip_prefix('-')) {
                (Some(text), _) => Ok(text.to_owned()),
                (_, Some(text)) => Err(text.to_owned()),
                _ => Err("the child was killed".to_owned()),
            }
        }
    }
}

/// Does `work` in a child, and returns whether it came to its end within `limit`; if not, what
/// `look` returns, which is given the child's process id. The child is killed then.
pub fn ends_in_child(
    limit: Duration,
    work: impl FnOnce(),
    look: impl FnOnce(i32) -> String,
) -> io::Result<Result<(), String>> {
    match clone(0, None)? {
        CloneResult::Child(_) => {
            work();
            exit_now(0)
        }
        CloneResult::Parent { pid, pidfd } => {
            let ended = ended_within(&pidfd, limit).unwrap_or(false);
            let how = if ended { Ok(()) } else { Err(look(pid)) };
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            // What even this does not end is the host's init's to reap.
            if ended_within(&pidfd, KILLED).unwrap_or(false) {
                let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            }
            Ok(how)
        }
    }
}
