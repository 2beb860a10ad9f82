//! The life of a monitor.

use super::clients::Clients;
use super::console::Console;
use super::handoff::Handoff;
use super::log::Log;
use super::timer::pause;
use super::watch::{Token, Watch};
use super::{end, hand_over, notify, oom};
use crate::responder::Responder;
use core::ffi::CStr;
use holm_proto::Ended;
use holm_sys::bare::{self, Inherited};

/// So many turns without a rest, then one: a guest that floods its console pays, not the host.
const TURNS: u32 = 64;

/// How long a rest is, in milliseconds.
const REST: u16 = 10;

/// SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM: none of them ends a monitor.
const IGNORED: [i32; 8] = [1, 2, 3, 10, 12, 13, 14, 15];

/// What a monitor works on.
struct Monitor {
    handoff: Handoff,
    watch: Watch,
    log: Log,
    console: Option<Console>,
    responder: Option<Responder>,
    clients: Clients,
}

/// Runs until the guest's init has ended; `title` is `[holm] NAME`.
pub fn run(title: &'static CStr, inherited: Inherited) -> i32 {
    bare::catch(&IGNORED);
    bare::set_comm(title);
    let Some(mut handoff) = Handoff::take(title, inherited) else {
        return 125;
    };
    oom::protect(true);
    let Ok(watch) = Watch::new() else { return 125 };
    let log = Log::open(&handoff.folder);
    let console = handoff.console.take().and_then(Console::new);
    let responder = handoff.responder.take().and_then(Responder::new);
    let clients = Clients::default();
    let mut monitor = Monitor { handoff, watch, log, console, responder, clients };
    monitor.subscribe();
    let ended = monitor.serve();
    monitor.clients.end(ended);
    hand_over::hand_over(monitor.handoff, ended)
}

impl Monitor {
    fn subscribe(&self) {
        self.watch.level(&self.handoff.init, Token::Init);
        self.watch.level(&self.handoff.listener, Token::Listener);
        if let Some(notify) = &self.handoff.notify {
            self.watch.level(notify, Token::Notify);
        }
        if let Some(responder) = &self.responder {
            self.watch.level(&responder.socket, Token::Responder);
        }
        if let Some(console) = &self.console {
            self.watch.edge(&console.master, Token::Console);
        }
    }

    /// Moves bytes until init has ended; says how it did.
    fn serve(&mut self) -> Ended {
        let mut more = true;
        let mut turns = 0;
        loop {
            if turns == TURNS {
                turns = 0;
                pause(REST.into());
            }
            let before = bare::milliseconds();
            let token = self.watch.next(if more { Some(0) } else { None });
            // A wait that was over at once is no rest: byte by byte a guest makes as much work as in bursts.
            turns = if bare::milliseconds() - before < REST.into() { turns + 1 } else { 0 };
            match token {
                Some(Token::Init) => {
                    if let Some(ended) = end::of(&self.handoff.init) {
                        // Bounded: another holder of the terminal may go on writing for ever.
                        (0..TURNS).all(|_| self.copy());
                        return ended;
                    }
                }
                Some(Token::Listener) => {
                    self.clients.accept(
                        &self.handoff.listener,
                        &self.watch,
                        self.console.is_some(),
                    );
                }
                Some(Token::Notify) => {
                    notify::receive(&self.handoff);
                }
                Some(Token::Responder) => {
                    if let Some(responder) = &self.responder {
                        responder.receive();
                    }
                }
                Some(Token::Client) => {}
                Some(Token::Console) | None => more = self.copy(),
            }
            self.clients.receive(&mut self.console);
        }
    }

    /// Copies what the guest wrote; says whether there may be more.
    fn copy(&mut self) -> bool {
        let Monitor { handoff, console, log, clients, .. } = self;
        let mut sink = |message: &[u8]| {
            log.append(&handoff.folder, &message[1..]);
            clients.send(message);
        };
        console.as_mut().is_some_and(|console| console.copy(&mut sink))
    }
}
