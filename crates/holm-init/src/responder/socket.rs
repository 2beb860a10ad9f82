//! The responder's sockets.

use super::reply::{REPLY_MAX, reply, reply_to};
use crate::nflog::packets;
use holm_proto::{Lease, handoff};
use holm_sys::bare::Args;
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use rustix::net::{RecvFlags, recv};

/// The longest frame that a guest has a reason to send, and what the kernel tells beside it, in
/// bytes; of a longer one the rest is lost.
const REQUEST_MAX: usize = 2048;

/// The sockets on the guest's network, and what is offered there.
pub struct Responder {
    /// The packet socket.
    replies: OwnedFd,
    /// The netlink socket that tells requests, if the other does not receive them.
    requests: Option<OwnedFd>,
    lease: Lease,
}

impl Responder {
    /// `None` without a lease to offer.
    pub fn new(replies: OwnedFd, requests: Option<OwnedFd>) -> Option<Responder> {
        let lease = Lease::from_text(Args::env(handoff::LEASE)?.to_bytes())?;
        Some(Responder { replies, requests, lease })
    }

    /// The socket at which requests arrive.
    pub fn socket(&self) -> &OwnedFd {
        self.requests.as_ref().unwrap_or(&self.replies)
    }

    /// Takes what has arrived and answers it, if there is something to say.
    // Its buffers would be on the stack of every monitor from the start.
    #[inline(never)]
    pub fn receive(&self) {
        let mut request = [0; REQUEST_MAX];
        let mut out = [0; REPLY_MAX];
        let Some(requests) = &self.requests else {
            let Ok(length) = read(&self.replies, &mut request[..]) else { return };
            let reply = reply(&request[..length], &self.lease, &mut out);
            return self.send(&out, reply);
        };
        // What was lost while the socket was full is asked for again.
        let Ok((length, _)) = recv(requests, &mut request[..], RecvFlags::DONTWAIT) else { return };
        packets(&request[..length], |ethernet, packet| {
            let reply = reply_to(ethernet, packet, &self.lease, &mut out);
            self.send(&out, reply);
        });
    }

    fn send(&self, out: &[u8], length: Option<usize>) {
        if let Some(frame) = length.and_then(|length| out.get(..length)) {
            // A reply that does not fit is asked for again.
            let _ = write(&self.replies, frame);
        }
    }
}
