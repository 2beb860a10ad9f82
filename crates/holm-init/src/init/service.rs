//! The services of a guest with the minimal init.

use super::notify::notify;
use super::start::start;
use holm_proto::Text;
use holm_proto::init::{Restart, SERVICES_MAX};
use holm_sys::bare::{Args, Status, milliseconds};

/// The backoff before a service starts again, in milliseconds. It doubles with each early end.
const BACKOFF_MIN: u32 = 100;
const BACKOFF_MAX: u32 = 30_000;

/// A service that ran for at least this many milliseconds did not end early.
const STABLE_AFTER: u64 = 10_000;

struct Service {
    argv: Args,
    restart: Restart,
    pid: Option<i32>,
    started: u64,
    backoff: u32,
    /// When to start it, by the monotonic clock in milliseconds.
    due: Option<u64>,
}

/// All services, in the order of their start.
#[derive(Default)]
pub struct Services([Option<Service>; SERVICES_MAX], Counts);

/// How many services there are by what they do, as last reported.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    running: u64,
    to_be_restarted: u64,
    ended: u64,
}

impl Services {
    /// Adds a service, to be started at once; `None` when there are too many.
    pub fn add(&mut self, argv: Args, restart: Restart) -> Option<()> {
        let slot = self.0.iter_mut().find(|slot| slot.is_none())?;
        let due = Some(0);
        *slot = Some(Service { argv, restart, pid: None, started: 0, backoff: BACKOFF_MIN, due });
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

    /// Reports how the services are (`STATUS=`), if that has changed.
    pub fn report_changes(&mut self) {
        let mut now = Counts::default();
        for service in self.0.iter().flatten() {
            match (service.pid, service.due) {
                (Some(_), _) => now.running += 1,
                (None, Some(_)) => now.to_be_restarted += 1,
                (None, None) => now.ended += 1,
            }
        }
        if now == self.1 {
            return;
        }
        self.1 = now;
        let mut buffer = [0; 128];
        let mut text = Text::new(&mut buffer);
        text.put(b"STATUS=services: ").number(now.running).put(b" running, ");
        text.number(now.to_be_restarted)
            .put(b" to be restarted, ")
            .number(now.ended)
            .put(b" ended");
        let length = text.len();
        notify(&buffer[..length]);
    }

    /// The pid of the last service that runs.
    pub fn last_running(&self) -> Option<i32> {
        self.0.iter().flatten().rev().find_map(|service| service.pid)
    }

    /// Whether the service with this pid still runs.
    pub fn runs(&self, pid: i32) -> bool {
        self.0.iter().flatten().any(|service| service.pid == Some(pid))
    }

    /// Stops tracking the service with this pid, whether it has ended or not.
    pub fn forget(&mut self, pid: i32) {
        for service in self.0.iter_mut().flatten().filter(|service| service.pid == Some(pid)) {
            service.pid = None;
        }
    }
}

impl Service {
    fn start(&mut self, now: u64) {
        self.started = now;
        self.pid = start(self.argv, false);
        self.due = None;
        if self.pid.is_none() {
            self.schedule(now);
        }
    }

    fn ended(&mut self, status: Status) {
        self.pid = None;
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
}
