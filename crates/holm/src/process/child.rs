use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use holm_sys::process::{CloneResult, clone, exit_now};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::identity::{ended_within, kill_and_wait};
use crate::step;

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

/// Does `work` in a child, and waits at most `limit` for its end; if that did not come, the child
/// is killed, and the error says how far it had come.
pub fn ends_in_child(limit: Duration, work: impl FnOnce()) -> io::Result<Result<(), String>> {
    match clone(0, None)? {
        CloneResult::Child(_) => {
            work();
            exit_now(0)
        }
        CloneResult::Parent { pid, pidfd } => {
            let ended = ended_within(&pidfd, limit).unwrap_or(false);
            let how = if ended { Ok(()) } else { Err(how_far(pid)) };
            // What cannot be killed is the host's init's to reap.
            if kill_and_wait(&pidfd).unwrap_or(false) {
                let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            }
            Ok(how)
        }
    }
}

/// How far a child that runs a copy of this program has come with a start, and what it waits for in
/// the kernel.
pub fn how_far(pid: i32) -> String {
    let [done, at] = step::of(pid);
    let waits = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
    let mut clauses = vec![format!("it hangs{at}")];
    if !done.is_empty() {
        clauses.push(format!("after the step `{done}`"));
    }
    if !matches!(&*waits, "" | "0") {
        clauses.push(format!("in the kernel's {waits}"));
    }
    clauses.join(", ")
}
