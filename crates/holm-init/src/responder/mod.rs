//! Answers a guest that asks for its network by DHCP, router solicitation or `DHCPv6`.
//!
//! Pure and without a heap: the monitor is told a packet by the log of nftables, or reads a frame
//! from its packet socket, [`reply`] writes the reply, and the monitor writes that to the packet
//! socket. Everything in it comes from the guest: whatever does not fit gets no reply, and nothing
//! here panics or loops on it.

mod dhcp;
mod dhcp6;
mod ipv6;
mod packet;
mod reply;
mod router;
mod socket;
#[cfg(test)]
mod tests;

pub use reply::{REPLY_MAX, reply, reply_to};
pub(crate) use socket::Responder;
