//! The services of a guest with the minimal init.

use super::start::start;
use holm_proto::init::{Restart, SERVICES_MAX};
use holm_sys::bare::{Args, Status, milliseconds};

/// The pause before a service starts again, in milliseconds: at first, and at most. It doubles with
/// each early end.
const FIRST_PAUSE: u32 = 100;
const LONGEST_PAUSE: u32 = 30_000;

/// A service that ran for at least this many milliseconds did not end early.
const LONG_ENOUGH: u64 = 10_000;

struct Service {
    run: Args,
    restart: Restart,
    pid: Option<i32>,
    started: u64,
    pause: u32,
    /// When to start it, by the monotonic clock in milliseconds.
    due: Option<u64>,
}

/// All services, in the order of their start.
#[derive(Default)]
pub struct Services([Option<Service>; SERVICES_MAX]);

impl Services {
    /// Adds a service, to be started at once; `None` when there are too many.
    pub fn add(&mut self, run: Args, restart: Restart) -> Option<()> {
        let slot = self.0.iter_mut().find(|slot| slot.is_none())?;
        let due = Some(0);
        *slot = Some(Service { run, restart, pid: None, started: 0, pause: FIRST_PAUSE, due });
        Some(())
    }

    /// Starts what is due; returns how many milliseconds until the next is.
    pub fn start_due(&mut self) -> Option<u32> {
        let now = milliseconds();
        let mut next: Option<u64> = None;
        for service in self.0.iter_mut().flatten() {
            let Some(due) = service.due else { continue };
            if due <= now {
                service.start(now);
            }
            if let Some(due) = service.due {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next.map(|next| u32::try_from(next.saturating_sub(now)).unwrap_or(u32::MAX))
    }

    /// The process `pid` ended: if it was a service, schedules its next start.
    pub fn ended(&mut self, pid: i32, status: Status) {
        let mut services = self.0.iter_mut().flatten();
        if let Some(service) = services.find(|service| service.pid == Some(pid)) {
            service.ended(status);
        }
    }

    /// The pid of the last service that runs.
    pub fn last_running(&self) -> Option<i32> {
        self.0.iter().flatten().rev().find_map(|service| service.pid)
    }

    /// Whether the service with this pid still runs.
    pub fn runs(&self, pid: i32) -> bool {
        self.0.iter().flatten().any(|service| service.pid == Some(pid))
    }

    /// Counts this service as ended, whether or not it is.
    pub fn count_as_ended(&mut self, pid: i32) {
        for service in self.0.iter_mut().flatten().filter(|service| service.pid == Some(pid)) {
            service.pid = None;
        }
    }
}

impl Service {
    fn start(&mut self, now: u64) {
        self.started = now;
        self.pid = start(self.run, false);
        self.due = None;
        if self.pid.is_none() {
            self.schedule(now);
        }
    }

    fn ended(&mut self, status: Status) {
        self.pid = None;
        let now = milliseconds();
        if now - self.started >= LONG_ENOUGH {
            self.pause = FIRST_PAUSE;
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
        self.due = Some(now + u64::from(self.pause));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}
