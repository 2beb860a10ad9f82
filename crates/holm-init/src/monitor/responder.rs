//! Answers on the guest's network.

use crate::answer::{ANSWER_MAX, answer};
use holm_proto::{Lease, handoff};
use holm_sys::bare::Args;
use rustix::fd::OwnedFd;
use rustix::io::{read, write};

/// The longest frame that a guest has a reason to send, in bytes; of a longer one the rest is lost.
const FRAME_MAX: usize = 1600;

/// The guest's packet socket, and what to answer there.
pub struct Responder {
    pub socket: OwnedFd,
    lease: Lease,
}

impl Responder {
    /// `None` when nobody said what to answer.
    pub fn new(socket: OwnedFd) -> Option<Responder> {
        let lease = Lease::from_text(Args::env(handoff::LEASE)?.to_bytes())?;
        Some(Responder { socket, lease })
    }

    /// Takes one frame and answers it, if there is something to say.
    pub fn receive(&self) {
        let mut frame = [0; FRAME_MAX];
        let mut reply = [0; ANSWER_MAX];
        let Ok(len) = read(&self.socket, &mut frame[..]) else { return };
        if let Some(len) = answer(&frame[..len], &self.lease, &mut reply) {
            // A reply that does not fit is asked for again.
            let _ = write(&self.socket, &reply[..len]);
        }
    }
}
