//! The services of a guest with the minimal init.

use super::notify::notify;
use super::start::start;
use core::ffi::CStr;
use holm_proto::Text;
use holm_proto::init::{Restart, SERVICES_MAX};
use holm_proto::path::STATUS_MAX;
use holm_sys::bare::{Args, Status, milliseconds};

/// What precedes a text for the monitor (`sd_notify(3)`).
const STATUS: &[u8] = b"STATUS=";

/// The backoff before a service starts again, in milliseconds. It doubles with each early end.
const BACKOFF_MIN: u32 = 100;
const BACKOFF_MAX: u32 = 30_000;

/// A service that ran for at least this many milliseconds did not end early.
const STABLE_AFTER: u64 = 10_000;

struct Service {
    name: &'static CStr,
    argv: Args,
    restart: Restart,
    pid: Option<i32>,
    started: u64,
    backoff: u32,
    /// When to start it, by the monotonic clock in milliseconds.
    due: Option<u64>,
    /// Its program could not be executed when it was last started.
    in_vain: bool,
    /// How it last ended.
    last: Option<Status>,
    /// How often it was started again.
    restarts: u64,
}

/// All services, in the order of their start.
#[derive(Default)]
pub struct Services {
    all: [Option<Service>; SERVICES_MAX],
    /// Something has happened that was not reported yet.
    changed: bool,
}

impl Services {
    /// Adds a service, to be started at once; `None` when there are too many.
    pub fn add(&mut self, name: &'static CStr, argv: Args, restart: Restart) -> Option<()> {
        let slot = self.all.iter_mut().find(|slot| slot.is_none())?;
        *slot = Some(Service {
            name,
            argv,
            restart,
            pid: None,
            started: 0,
            backoff: BACKOFF_MIN,
            due: Some(0),
            in_vain: false,
            last: None,
            restarts: 0,
        });
        Some(())
    }

    /// Starts what is due; returns how many milliseconds until the next is.
    pub fn start_due(&mut self) -> Option<u32> {
        let now = milliseconds();
        let mut next: Option<u64> = None;
        for service in self.all.iter_mut().flatten() {
            let Some(due) = service.due else { continue };
            if due <= now {
                service.start(now);
                self.changed = true;
            }
            if let Some(due) = service.due {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next.map(|next| u32::try_from(next.saturating_sub(now)).unwrap_or(u32::MAX))
    }

    /// The process `pid` ended: if it was a service, schedules its next start.
    pub fn ended(&mut self, pid: i32, status: Status) {
        let mut services = self.all.iter_mut().flatten();
        if let Some(service) = services.find(|service| service.pid == Some(pid)) {
            service.ended(status);
            self.changed = true;
        }
    }

    /// Reports how the services are (`STATUS=`), if that has changed: how many run, are to be
    /// restarted and have ended, then how each did that has ended at least once.
    pub fn report_changes(&mut self) {
        if !core::mem::take(&mut self.changed) {
            return;
        }
        let (mut running, mut to_be_restarted, mut ended) = (0, 0, 0);
        for service in self.all.iter().flatten() {
            match (service.pid, service.due) {
                (Some(_), _) => running += 1,
                (None, Some(_)) => to_be_restarted += 1,
                (None, None) => ended += 1,
            }
        }
        let mut buffer = [0; STATUS.len() + STATUS_MAX];
        let mut text = Text::new(&mut buffer);
        text.put(STATUS).put(b"services: ").number(running).put(b" running, ");
        text.number(to_be_restarted).put(b" to be restarted, ").number(ended).put(b" ended");
        for service in self.all.iter().flatten() {
            service.describe(&mut text);
        }
        let length = text.len();
        notify(&buffer[..length]);
    }

    /// The pid of the last service that runs.
    pub fn last_running(&self) -> Option<i32> {
        self.all.iter().flatten().rev().find_map(|service| service.pid)
    }

    /// Whether the service with this pid still runs.
    pub fn runs(&self, pid: i32) -> bool {
        self.all.iter().flatten().any(|service| service.pid == Some(pid))
    }

    /// Stops tracking the service with this pid, whether it has ended or not.
    pub fn forget(&mut self, pid: i32) {
        for service in self.all.iter_mut().flatten().filter(|service| service.pid == Some(pid)) {
            service.pid = None;
        }
    }
}

impl Service {
    fn start(&mut self, now: u64) {
        // One that never ended starts for the first time.
        self.restarts += u64::from(self.last.is_some());
        self.started = now;
        let started = start(self.argv, false);
        self.pid = started.map(|started| started.pid);
        self.in_vain = started.is_none_or(|started| started.in_vain);
        self.due = None;
        if self.pid.is_none() {
            self.schedule(now);
        }
    }

    fn ended(&mut self, status: Status) {
        self.pid = None;
        self.last = Some(status);
        let now = milliseconds();
        if now - self.started >= STABLE_AFTER {
            self.backoff = BACKOFF_MIN;
        }
        let again = match self.restart {
            Restart::No => false,
            Restart::OnFailure => status != Status::Exited(0),
            Restart::Always => true,
        };
        if again {
            self.schedule(now);
        }
    }

    fn schedule(&mut self, now: u64) {
        self.due = Some(now + u64::from(self.backoff));
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
    }

    /// Adds how it ended, if it has, and how often it was started again. What does not fit is left
    /// out as a whole.
    fn describe(&self, text: &mut Text<'_>) {
        // The longest of what follows, without the name.
        const LONGEST: usize = 80;
        let name = self.name.to_bytes();
        let Some(last) = self.last.filter(|_| text.len() + name.len() + LONGEST < STATUS_MAX)
        else {
            return;
        };
        text.put(b"; ").put(name).put(b" ");
        match last {
            Status::Exited(_) if self.in_vain => text.put(b"cannot be executed"),
            Status::Exited(code) => {
                text.put(b"exited with ").number(u64::from(code.unsigned_abs()))
            }
            Status::Killed(signal) => {
                text.put(b"was killed by signal ").number(u64::from(signal.unsigned_abs()))
            }
        };
        if self.restarts > 0 {
            text.put(b", started again ").number(self.restarts).put(b"x");
        }
    }
}
