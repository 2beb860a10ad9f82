//! What process 1 does from its start to the end of the guest.

use super::arguments::Arguments;
use super::service::Services;
use super::{notify::notify, report::report, start::start};
use holm_proto::CONSOLE_MASTER;
use holm_sys::bare::{self, Args, Inherited, Signal, Status, milliseconds};
use rustix::fd::OwnedFd;
use rustix::process::setsid;
use rustix::system::{RebootCommand, reboot};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGUSR1: i32 = 10;
const SIGUSR2: i32 = 12;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
/// `SIGRTMIN` plus 3 to 5: what systemd's `halt`, `poweroff` and `reboot` send to pid 1.
const RTMIN_3: i32 = 34 + 3;
const RTMIN_4: i32 = 34 + 4;
const RTMIN_5: i32 = 34 + 5;

/// How long a process may take to end after SIGTERM, in milliseconds.
const GRACE: u64 = 5000;

/// How the guest is to end.
#[derive(Clone, Copy)]
enum Goal {
    Exit,
    Reboot,
    Halt,
    Poweroff,
}

struct Init {
    main: Option<i32>,
    /// The status to end with, once the main command has ended.
    status: Option<i32>,
    services: Services,
    _console: Option<OwnedFd>,
}

/// Runs what `args` name until the guest is to end; returns the status to end with.
// What the other one of the two has on its stack is not for this one.
#[inline(never)]
pub fn run(args: Args, mut inherited: Inherited) -> i32 {
    let console = inherited.take(CONSOLE_MASTER);
    let _ = setsid();
    let Some(arguments) = Arguments::parse(args) else {
        report(&[b"invalid arguments: only holm starts this program"]);
        return 126;
    };
    // Blocked before the first child starts, or its end could be missed.
    bare::block_all_signals();
    let mut init =
        Init { main: None, status: None, services: arguments.services, _console: console };
    let mut ready = true;
    if let Some(main) = arguments.main {
        let Some(started) = start(main, true) else { return 126 };
        init.main = Some(started.pid);
        // A guest whose command cannot be executed is never ready: it ends.
        ready = !started.in_vain;
    }
    init.services.start_due();
    if ready {
        notify(b"READY=1");
    }
    init.serve()
}

impl Init {
    fn serve(&mut self) -> i32 {
        loop {
            self.reap();
            if let Some(status) = self.status {
                return status;
            }
            let wait = self.services.start_due();
            self.services.report_changes();
            if let Some(signal) = bare::wait(wait)
                && let Some(goal) = self.handle(signal)
            {
                return self.end(goal);
            }
        }
    }

    /// Reaps all children that have ended; returns whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match bare::reap() {
                Ok(None) => return true,
                Err(_) => return false,
                Ok(Some((pid, status))) if Some(pid) == self.main => {
                    self.main = None;
                    self.status = Some(match status {
                        Status::Exited(code) => code,
                        Status::Killed(signal) => 128 + signal,
                    });
                }
                Ok(Some((pid, status))) => self.services.ended(pid, status),
            }
        }
    }

    /// A signal from outside the guest (its sender has no pid here) is for the main command, except
    /// SIGRTMIN+3, which is `holm stop`. From inside, `reboot`, `halt` and `poweroff` send SIGTERM,
    /// SIGUSR1 and SIGUSR2 if they are busybox's, and SIGRTMIN+5, +3 and +4 if they are systemd's.
    fn handle(&self, signal: Signal) -> Option<Goal> {
        let inside = signal.sender != 0;
        match signal.number {
            SIGCHLD => None,
            SIGTERM | RTMIN_5 if inside => Some(Goal::Reboot),
            SIGUSR1 | RTMIN_3 if inside => Some(Goal::Halt),
            SIGUSR2 | RTMIN_4 if inside => Some(Goal::Poweroff),
            RTMIN_3 => Some(Goal::Exit),
            number => match self.main {
                Some(main) => {
                    bare::kill(main, number);
                    None
                }
                // A hang-up asks a daemon to read its settings again: there are none here.
                None => matches!(number, SIGTERM | SIGINT).then_some(Goal::Exit),
            },
        }
    }

    /// Stops everything, the last started first, and ends the guest.
    fn end(&mut self, goal: Goal) -> i32 {
        while let Some(service) = self.services.last_running() {
            // Its whole process group: a shell as a service leaves children behind otherwise.
            bare::kill(-service, SIGTERM);
            self.wait_for_children(|init| !init.services.runs(service));
            bare::kill(-service, SIGKILL);
            self.services.forget(service);
        }
        bare::kill(-1, SIGTERM);
        self.wait_for_children(|_| false);
        let _ = match goal {
            Goal::Exit => return self.status.unwrap_or(0),
            // In a pid namespace of its own this ends pid 1 by SIGHUP or SIGINT, which tells the
            // monitor.
            Goal::Reboot => reboot(RebootCommand::Restart),
            Goal::Halt => reboot(RebootCommand::Halt),
            Goal::Poweroff => reboot(RebootCommand::PowerOff),
        };
        0
    }

    /// Reaps until `done` holds, no child is left or the grace period is over.
    fn wait_for_children(&mut self, done: impl Fn(&Init) -> bool) {
        let until = milliseconds() + GRACE;
        loop {
            let children = self.reap();
            let now = milliseconds();
            if !children || now >= until || done(self) {
                return;
            }
            bare::wait(u32::try_from(until - now).ok());
        }
    }
}
