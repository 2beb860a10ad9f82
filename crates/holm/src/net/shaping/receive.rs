//! What a private guest receives: a token bucket on the host's end of its veth pair.

use rustix::io::Errno;

use super::class::QDISC;
use super::htb::{gone, header, rate_spec, ticks};
use crate::net::error::Error;
use crate::net::netlink::{Batch, CREATE, REPLACE, Refused, Socket};
use crate::net::request::Request;
use crate::net::uapi::{RTM_DELQDISC, RTM_NEWQDISC, TC_H_ROOT, TCA_KIND, TCA_OPTIONS};

/// Bounds what goes out of an interface, in bits in a second; `None` removes the bound.
pub fn receive_at_most(interface: u32, cap: Option<u64>) -> Result<(), Error> {
    const TBF_PARMS: u16 = 1;
    const TBF_RATE64: u16 = 4;
    const TBF_BURST: u16 = 6;
    let socket = Socket::route()?;
    let mut batch = Batch::default();
    let header = header(interface, QDISC, TC_H_ROOT);
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
        .message(Request::MakeQdisc, RTM_NEWQDISC, CREATE | REPLACE, &header)
        .text(TCA_KIND, "tbf")
        .nest(TCA_OPTIONS, |batch| {
            batch
                .attr(TBF_PARMS, &options)
                .attr(TBF_RATE64, &rate.to_ne_bytes())
                .number(TBF_BURST, burst);
        });
    Ok(socket.execute(&mut batch)?)
}

/// What may be received at once after a silence, and what waits at most, in bytes: what the rate
/// allows in 2 and in 50 milliseconds.
fn lengths(rate: u64) -> (u32, u32) {
    const PACKET: u64 = 9216;
    let of = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    (of((rate / 500).max(PACKET)), of((rate / 20).max(8 * PACKET)))
}
