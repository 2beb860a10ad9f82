//! The responder's socket.

use super::reply::{REPLY_MAX, reply};
use holm_proto::{Lease, handoff};
use holm_sys::bare::Args;
use rustix::fd::OwnedFd;
use rustix::io::{read, write};

/// The longest frame that a guest has a reason to send, in bytes; of a longer one the rest is lost.
const FRAME_MAX: usize = 1600;

/// The packet socket on the guest's network, and what is offered there.
pub struct Responder {
    pub socket: OwnedFd,
    lease: Lease,
}

impl Responder {
    /// `None` without a lease to offer.
    pub fn new(socket: OwnedFd) -> Option<Responder> {
        let lease = Lease::from_text(Args::env(handoff::LEASE)?.to_bytes())?;
        Some(Responder { socket, lease })
    }

    /// Takes one frame and answers it, if there is something to say.
    // Its buffers would be on the stack of every monitor from the start.
    #[inline(never)]
    pub fn receive(&self) {
        let mut frame = [0; FRAME_MAX];
        let mut out = [0; REPLY_MAX];
        let Ok(len) = read(&self.socket, &mut frame[..]) else { return };
        if let Some(len) = reply(&frame[..len], &self.lease, &mut out) {
            // A reply that does not fit is asked for again.
            let _ = write(&self.socket, &out[..len]);
        }
    }
}
