//! The messages that make, read and remove the qdisc and its classes (`pkt_sched.h`).

use rustix::io::Errno;

use super::class::{HOST, HTB, LINK, Parameters, instance_of, splits};
use super::root::Root;
use super::tbf;
use crate::net::error::Error;
use crate::net::netlink::{Batch, CREATE, DUMP, EXCL, REPLACE, Refused, Socket, find, number};
use crate::net::request::Request;
use crate::net::tc::{gone, header, names, rate_spec, ticks};
use crate::net::uapi::{
    RTM_DELTCLASS, RTM_GETTCLASS, RTM_NEWQDISC, RTM_NEWTCLASS, TC_H_ROOT, TCA_KIND, TCA_OPTIONS,
};
use crate::record::Shaping;

const HTB_PARMS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;

/// A guest's class.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    pub id: u32,
    /// Bits in a second.
    pub reserve: u64,
}

/// Whether an interface has a class. Of one that is gone none is missing.
pub fn has_class(socket: &Socket, interface: u32, class: u32) -> Result<bool, Error> {
    let mut batch = Batch::default();
    batch.message(Request::ListClasses, RTM_GETTCLASS, 0, &header(interface, class, 0));
    batch.acknowledge();
    match socket.query(&batch, |_, _| {}) {
        Err(Refused { errno: Errno::NOENT, .. }) => Ok(false),
        Err(Refused { errno: Errno::NODEV, .. }) => Ok(true),
        asked => Ok(asked.map(|()| true)?),
    }
}

/// The guests' classes of an interface.
pub fn classes(socket: &Socket, interface: u32) -> Result<Vec<Class>, Error> {
    let mut batch = Batch::default();
    batch.message(Request::ListClasses, RTM_GETTCLASS, DUMP, &header(interface, 0, 0));
    let mut all = Vec::new();
    let asked = socket.query(&batch, |_, payload| all.extend(Class::parse(payload)));
    match asked {
        Err(Refused { errno: Errno::NODEV, .. }) => Ok(Vec::new()),
        asked => Ok(asked.map(|()| all)?),
    }
}

/// Their ids.
pub fn ids(socket: &Socket, interface: u32) -> Result<Vec<u32>, Error> {
    Ok(classes(socket, interface)?.into_iter().map(|class| class.id).collect())
}

impl Class {
    fn parse(payload: &[u8]) -> Option<Self> {
        let (_, id) = names(payload)?;
        if id & 0xffff_0000 != HTB || instance_of(id) == 0 {
            return None;
        }
        let options = find(payload.get(20..)?, TCA_OPTIONS)?;
        let bytes = match find(options, HTB_RATE64).and_then(|value| value.try_into().ok()) {
            Some(value) => u64::from_ne_bytes(value),
            None => u64::from(number(find(options, HTB_PARMS)?.get(8..)?)?),
        };
        Some(Self { id, reserve: Parameters::reserve(bytes * 8) })
    }
}

/// Makes the qdisc, if it is not the `root` already, and sets the classes of the link and of the
/// host.
pub fn make(socket: &Socket, interface: u32, link: u64, root: &Root) -> Result<(), Error> {
    let mut batch = Batch::default();
    let there = *root == Root::Htb;
    if !there {
        let in_place_of = if *root == Root::Departures { REPLACE } else { EXCL };
        // `struct tc_htb_glob`: version 3, quanta by rate (unused), the class of what has none.
        let global = [3, 10, HOST & 0xffff, 0, 0].map(u32::to_ne_bytes).concat();
        batch
            .message(
                Request::MakeQdisc,
                RTM_NEWQDISC,
                CREATE | in_place_of,
                &header(interface, HTB, TC_H_ROOT),
            )
            .text(TCA_KIND, "htb")
            .nest(TCA_OPTIONS, |batch| {
                batch.attr(HTB_INIT, &global);
            });
    }
    class(&mut batch, interface, (LINK, HTB), Parameters::link(link));
    class(&mut batch, interface, (HOST, LINK), Parameters::host(link));
    socket.execute(&mut batch)?;
    if there { Ok(()) } else { queue(socket, interface, HOST, link) }
}

/// Makes or changes a guest's class.
pub fn set(socket: &Socket, id: u32, shaping: &Shaping) -> Result<(), Error> {
    let mut batch = Batch::default();
    class(&mut batch, shaping.uplink, (id, LINK), Parameters::guest(shaping));
    socket.execute(&mut batch)?;
    queue(socket, shaping.uplink, id, shaping.uplink_rate)
}

/// Makes or changes a class.
fn class(batch: &mut Batch, interface: u32, (id, parent): (u32, u32), parameters: Parameters) {
    let Parameters { rate, ceil, quantum } = parameters;
    let (rate, ceil) = (rate / 8, ceil / 8);
    // `struct tc_htb_opt`: two `tc_ratespec`, then times and bytes.
    let options = [
        &rate_spec(rate)[..],
        &rate_spec(ceil),
        &ticks(burst(rate), rate).to_ne_bytes(),
        &ticks(burst(rate), ceil).to_ne_bytes(),
        &quantum.to_ne_bytes(),
        &[0; 8],
    ]
    .concat();
    batch
        .message(Request::SetClass, RTM_NEWTCLASS, CREATE, &header(interface, id, parent))
        .text(TCA_KIND, "htb")
        .nest(TCA_OPTIONS, |batch| {
            batch
                .attr(HTB_PARMS, &options)
                .attr(HTB_RATE64, &rate.to_ne_bytes())
                .attr(HTB_CEIL64, &ceil.to_ne_bytes());
        });
}

/// What waits in a class of a link: packets that are split, if the link is slow, and of which each
/// connection has a queue, so that those of a guest wait little for each other. A kernel without
/// `fq_codel` has one queue, first in, first out.
fn queue(socket: &Socket, interface: u32, class: u32, link: u64) -> Result<(), Error> {
    let mut parent = class;
    if splits(link) {
        parent = tbf::split(socket, interface, class)?;
    }
    let mut batch = Batch::default();
    batch
        .message(Request::MakeQdisc, RTM_NEWQDISC, CREATE, &header(interface, 0, parent))
        .text(TCA_KIND, "fq_codel");
    match socket.execute(&mut batch) {
        Err(Refused { errno: Errno::NOENT, .. }) => Ok(()),
        done => Ok(done?),
    }
}

/// What may be sent at once after a silence, in bytes: what the rate allows in a millisecond, or a
/// packet of the longest Ethernet frames.
fn burst(rate: u64) -> u64 {
    (rate / 1000).max(9216)
}

/// Removes a class, if it is there.
pub fn remove(socket: &Socket, interface: u32, class: u32) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch.message(Request::RemoveClass, RTM_DELTCLASS, 0, &header(interface, class, 0));
    gone(socket.execute(&mut batch))
}
