use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::super::ending::wait_for_clean_up;
use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::running::{RunningGuest, read_record, running};

/// Waits until a guest is ready, at most `timeout`. Returns `false` at once if its init never
/// reports that.
///
/// The monitor records readiness as an attribute of the guest's cgroup, so inotify reports
/// it.
pub fn wait_ready(guest: &Guest<'_>, timeout: Duration) -> Result<bool> {
    let name = guest.name();
    let RunningGuest { cgroup, record } = match running(guest) {
        Err(Error::NotRunning(_)) => return Err(ended(guest)?),
        running => running?,
    };
    if !record.notifies {
        return Ok(false);
    }
    let fail = |errno| Error::io("watch the cgroup of", name.as_str(), errno);
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(fail)?;
    let directory = format!("/proc/self/fd/{}", cgroup.dir_fd().as_raw_fd());
    inotify::add_watch(&changes, directory, WatchFlags::ATTRIB).map_err(fail)?;
    let monitor = record.monitor()?;
    let Some(init) = record.init()? else { return Err(ended(guest)?) };
    let end = Instant::now() + timeout;
    loop {
        if cgroup.ready()? {
            return Ok(true);
        }
        let Some(monitor) = monitor.as_ref().filter(|_| record.adopted.is_none()) else {
            return Err(Error::ReadinessUnknown(name.clone()));
        };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let hint = format!("it keeps running; `holm logs {name}` shows what init prints");
            let (name, what) = (name.clone(), "was not ready");
            return Err(Error::Timeout { name, what, time: timeout, hint });
        }
        let mut fds = [
            PollFd::new(&changes, PollFlags::IN),
            PollFd::from_borrowed_fd(init.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(monitor.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(fail(errno)),
        }
        if !fds[1].revents().is_empty() {
            return Err(ended(guest)?);
        }
        if !fds[2].revents().is_empty() && !cgroup.ready()? {
            return Err(Error::ReadinessUnknown(name.clone()));
        }
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&changes, &mut buffer);
        while events.next().is_ok() {}
    }
}

/// The error of a guest that has ended, once its monitor has cleaned up: what its init said is in
/// the log then, and the guest can be started again or removed.
fn ended(guest: &Guest<'_>) -> Result<Error> {
    let record = match guest.cgroup()? {
        Some(cgroup) => read_record(&cgroup, guest.name())?,
        None => None,
    };
    // One with an init is that of the next run.
    if let Some(record) = record
        && !record.has_init()?
    {
        wait_for_clean_up(guest, record.monitor()?)?;
    }
    Ok(Error::Ended(guest.name().clone()))
}
