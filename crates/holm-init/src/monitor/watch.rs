//! What the monitor waits for, with epoll.

use core::mem::MaybeUninit;
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;

/// What is ready.
#[derive(Clone, Copy)]
pub enum Token {
    /// Init's pidfd: it ended.
    Init = 1,
    /// The console's master.
    Console,
    /// The clients' listening socket.
    Listener,
    /// The notify socket.
    Notify,
    /// The socket at which requests for the guest's network arrive.
    Responder,
    /// The netlink socket with the guest's connections.
    Flows,
    /// Any client.
    Client,
}

const TOKENS: [Token; 7] = [
    Token::Init,
    Token::Console,
    Token::Listener,
    Token::Notify,
    Token::Responder,
    Token::Flows,
    Token::Client,
];

/// The set of watched descriptors.
pub struct Watch(OwnedFd);

impl Watch {
    pub fn new() -> Result<Watch, Errno> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Watch)
    }

    /// Reports as long as something can be read (level-triggered).
    pub fn add_level_triggered(&self, fd: &impl AsFd, token: Token) -> Result<(), Errno> {
        self.add(fd, token, epoll::EventFlags::IN)
    }

    /// Reports once whenever something new happens (edge-triggered): what has hung up stays so, and
    /// must not keep the monitor busy.
    pub fn add_edge_triggered(&self, fd: &impl AsFd, token: Token) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        self.add(fd, token, flags)
    }

    fn add(&self, fd: &impl AsFd, token: Token, flags: epoll::EventFlags) -> Result<(), Errno> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(token as u64), flags)
    }

    /// The next event; `None` after `seconds`, or when interrupted.
    pub fn next(&self, seconds: Option<i64>) -> Option<Token> {
        let timeout = seconds.map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 });
        let mut events = [MaybeUninit::uninit(); 1];
        let (ready, _) = epoll::wait(&self.0, &mut events, timeout.as_ref()).ok()?;
        let token = ready.first()?.data.u64();
        TOKENS.into_iter().find(|t| *t as u64 == token)
    }
}
