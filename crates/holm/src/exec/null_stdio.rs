use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::command::{Command, Streams};
use super::spawn::spawn;
use super::{Error, Result};
use crate::cgroup::GuestCgroup;
use crate::process::ended_within;
use crate::record::RunRecord;

/// How long a killed command may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a command in a guest with `/dev/null` as its standard streams. Waits until it ends, with
/// whatever exit status, and kills it after `timeout`.
pub(crate) fn exec_with_null_stdio(
    record: &RunRecord,
    cgroup: &GuestCgroup,
    argv: &[&str],
    timeout: Duration,
) -> Result<()> {
    let argv = argv.iter().map(|&argument| argument.to_owned()).collect();
    let command = Command { argv, ..Command::default() };
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::step("open", "/dev/null", errno))?;
    let (child, _) = spawn(record, cgroup, &command, Streams::Null(null))?;
    if !ended_within(&child, timeout)? {
        let _ = pidfd_send_signal(&child, Signal::KILL);
        // A process that waits for a filesystem which the guest serves itself cannot even be
        // killed.
        if !ended_within(&child, GRACE)? {
            return Err(Error::step(
                "end the command in",
                "the guest",
                rustix::io::Errno::TIMEDOUT,
            ));
        }
    }
    // Init cannot end before its pid namespace is empty, and an unreaped child of ours counts.
    waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED)
        .map_err(|errno| Error::step("wait for", "the command", errno))?;
    Ok(())
}
