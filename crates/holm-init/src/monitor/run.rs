//! What a monitor does from its start to the end of init.

use super::clients::Clients;
use super::console::Console;
use super::flows::Flows;
use super::guest::Guest;
use super::log::Log;
use super::timer::pause;
use super::watch::{Token, Watch};
use super::{end, hand_over, notify, oom};
use crate::responder::Responder;
use core::ffi::CStr;
use holm_proto::Ended;
use holm_sys::bare::{self, Inherited};
use rustix::io::Errno;

/// After this many turns without a pause the monitor makes one: a guest that floods its console
/// pays for it, not the host.
const TURNS: u32 = 64;

/// How long that pause is, in milliseconds.
const PAUSE: u16 = 10;

/// Where the guest's `log` becomes `log.1`, in bytes.
const LOG_LIMIT: u64 = 1 << 20;

/// SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM: none of them ends a
/// monitor.
const IGNORED: [i32; 8] = [1, 2, 3, 10, 12, 13, 14, 15];

/// What a monitor works on.
struct Monitor {
    guest: Guest,
    watch: Watch,
    log: Log,
    console: Option<Console>,
    responder: Option<Responder>,
    flows: Option<Flows>,
    clients: Clients,
}

/// Runs until the guest's init has ended; `title` is `[holm] NAME`.
// What the other one of the two has on its stack is not for this one.
#[inline(never)]
pub fn run(title: &'static CStr, inherited: Inherited) -> i32 {
    bare::catch(&IGNORED);
    bare::set_comm(title);
    let Some(mut guest) = Guest::take(title, inherited) else {
        return 125;
    };
    oom::protect(true);
    let Ok(watch) = Watch::new() else { return 125 };
    let log = Log::open(&guest.directory, LOG_LIMIT, 1);
    let console = guest.console.take().and_then(Console::new);
    let (replies, requests) = (guest.responder.take(), guest.requests.take());
    let responder = replies.and_then(|replies| Responder::new(replies, requests));
    let flows = guest.flows.take().map(|(socket, directory)| Flows::new(socket, directory));
    let clients = Clients::default();
    let mut monitor = Monitor { guest, watch, log, console, responder, flows, clients };
    // It would wait for ever for what it cannot watch. The next command makes another monitor.
    if monitor.subscribe().is_err() {
        return 125;
    }
    let ended = monitor.serve();
    monitor.clients.end(ended);
    hand_over::hand_over(monitor.guest, ended)
}

impl Monitor {
    fn subscribe(&self) -> Result<(), Errno> {
        self.watch.add_level_triggered(&self.guest.init, Token::Init)?;
        self.watch.add_level_triggered(&self.guest.listener, Token::Listener)?;
        if let Some(notify) = &self.guest.notify {
            self.watch.add_level_triggered(notify, Token::Notify)?;
        }
        if let Some(responder) = &self.responder {
            self.watch.add_level_triggered(responder.socket(), Token::Responder)?;
        }
        if let Some(flows) = &self.flows {
            self.watch.add_level_triggered(&flows.socket, Token::Flows)?;
        }
        if let Some(console) = &self.console {
            let watched = self.watch.add_edge_triggered(&console.master, Token::Console);
            // What init kept may be no open file (O_PATH): then it has done without a console.
            return watched.or_else(|errno| if errno == Errno::BADF { Ok(()) } else { Err(errno) });
        }
        Ok(())
    }

    /// Serves until init has ended; returns how it did.
    fn serve(&mut self) -> Ended {
        let mut more = true;
        let mut turns = 0;
        loop {
            if turns == TURNS {
                turns = 0;
                pause(PAUSE.into());
            }
            let before = bare::milliseconds();
            let token = self.watch.next(if more { Some(0) } else { None });
            // A wait that was over at once is no pause: a guest that writes byte by byte makes as
            // much work as one that writes in bursts.
            turns = if bare::milliseconds() - before < PAUSE.into() { turns + 1 } else { 0 };
            match token {
                Some(Token::Init) => {
                    if let Some(ended) = end::of(&self.guest.init) {
                        // Bounded: another process that has the terminal open may write for ever.
                        (0..TURNS).all(|_| self.copy());
                        if let Some(flows) = &mut self.flows {
                            flows.receive_rest(self.guest.flow_group);
                        }
                        return ended;
                    }
                }
                Some(Token::Listener) => {
                    self.clients.accept(&self.guest.listener, &self.watch, self.console.is_some());
                }
                Some(Token::Notify) => {
                    notify::receive(&self.guest);
                }
                Some(Token::Responder) => {
                    if let Some(responder) = &self.responder {
                        responder.receive();
                    }
                }
                Some(Token::Flows) => {
                    if let Some(flows) = &mut self.flows {
                        flows.receive();
                    }
                }
                Some(Token::Client) => {}
                Some(Token::Console) | None => more = self.copy(),
            }
            self.clients.receive(&mut self.console);
        }
    }

    /// Copies what the guest wrote; returns whether there may be more.
    fn copy(&mut self) -> bool {
        let Monitor { guest, console, log, clients, .. } = self;
        let mut sink = |message: &[u8]| {
            log.append(&guest.directory, &message[1..]);
            clients.send(message);
        };
        console.as_mut().is_some_and(|console| console.copy(&mut sink))
    }
}
