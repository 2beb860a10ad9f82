//! The kernel's token bucket filter, for what a private guest receives, and to split packets.

use rustix::io::Errno;

use super::class::{HTB, PACKET_MAX};
use crate::net::error::Error;
use crate::net::netlink::{Batch, CREATE, REPLACE, Refused, Socket};
use crate::net::request::Request;
use crate::net::tc::{gone, header, rate_spec, ticks};
use crate::net::uapi::{RTM_DELQDISC, RTM_NEWQDISC, TC_H_ROOT, TCA_KIND, TCA_OPTIONS};

/// Bounds what goes out of an interface, in bits in a second; `None` removes the bound.
pub fn receive_at_most(interface: u32, cap: Option<u64>) -> Result<(), Error> {
    let socket = Socket::route()?;
    let mut batch = Batch::default();
    let header = header(interface, HTB, TC_H_ROOT);
    let Some(cap) = cap else {
        batch.message(Request::RemoveQdisc, RTM_DELQDISC, 0, &header);
        return match socket.execute(&mut batch) {
            // The root qdisc is another: there was no bound.
            Err(Refused { errno: Errno::INVAL, .. }) => Ok(()),
            done => gone(done),
        };
    };
    let rate = cap / 8;
    let (burst, limit) = lengths(rate);
    message(&mut batch, &header, rate, burst, limit);
    Ok(socket.execute(&mut batch)?)
}

/// Has all packets of a class of HTB split that are longer than Ethernet frames, and returns where
/// a queue for them can be. A kernel without this qdisc leaves the class as it is.
pub fn split(socket: &Socket, interface: u32, class: u32) -> Result<u32, Error> {
    // Bytes in a second: so fast that nothing waits for it.
    const NO_BOUND: u64 = 1_000_000_000_000;
    // As the first in, first out queue of an interface: a thousand packets.
    const LIMIT: u32 = 1000 * 1514;
    let handle = handle(class);
    let mut batch = Batch::default();
    message(&mut batch, &header(interface, handle, class), NO_BOUND, PACKET_MAX, LIMIT);
    match socket.execute(&mut batch) {
        Err(Refused { errno: Errno::NOENT, .. }) => Ok(class),
        done => Ok(done.map(|()| handle | 1)?),
    }
}

/// The handle of the qdisc below a class: the class's own number, but for one that is HTB's.
fn handle(class: u32) -> u32 {
    // Above all numbers of classes.
    const OTHER: u32 = 0x7fff_0000;
    let own = class << 16;
    if own == HTB { OTHER } else { own }
}

fn message(batch: &mut Batch, header: &[u8], rate: u64, burst: u32, limit: u32) {
    const TBF_PARMS: u16 = 1;
    const TBF_RATE64: u16 = 4;
    const TBF_BURST: u16 = 6;
    // `struct tc_tbf_qopt`: the rate, no peak rate, the queue's length in bytes, the burst's time.
    let options = [
        &rate_spec(rate)[..],
        &[0; 12],
        &limit.to_ne_bytes(),
        &ticks(burst.into(), rate).to_ne_bytes(),
        &[0; 4],
    ]
    .concat();
    batch
        .message(Request::MakeQdisc, RTM_NEWQDISC, CREATE | REPLACE, header)
        .text(TCA_KIND, "tbf")
        .nest(TCA_OPTIONS, |batch| {
            batch
                .attr(TBF_PARMS, &options)
                .attr(TBF_RATE64, &rate.to_ne_bytes())
                .number(TBF_BURST, burst);
        });
}

/// What may be received at once after a silence, and what waits at most, in bytes: what the rate
/// allows in 2 and in 50 milliseconds.
fn lengths(rate: u64) -> (u32, u32) {
    let packet = u64::from(PACKET_MAX);
    let of = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    (of((rate / 500).max(packet)), of((rate / 20).max(8 * packet)))
}

#[cfg(test)]
mod tests {
    use super::super::class::{HOST, class_id};
    use super::*;

    #[test]
    fn no_queue_has_the_handle_of_the_link() {
        assert_eq!(handle(HOST), 0x0002_0000);
        assert_eq!(handle(class_id(1, 5)), 0x0405_0000);
        assert_eq!(class_id(18, 0x6d) << 16, HTB);
        assert_ne!(handle(class_id(18, 0x6d)), HTB);
        assert!(handle(class_id(27, 1023)) < handle(class_id(18, 0x6d)));
    }
}
