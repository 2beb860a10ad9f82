//! `net.cap` alone, on an uplink with several queues: a BPF program gives each packet the time at
//! which it leaves, and fq in each queue keeps it until then. HTB would have one lock for all
//! queues.

use std::io;

use holm_bpf::{DEPARTURE_PROGRAM, Map, cap_rate, cap_value};
use holm_sys::bpf::{self, MapKind};
use rustix::io::Errno;

use super::class::DEPARTURES;
use super::root::{self, Root};
use crate::net::classifier::{self, Packets};
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::{Batch, CREATE, Refused, Socket};
use crate::net::request::Request;
use crate::net::tc::header;
use crate::net::uapi::{RTM_NEWQDISC, TC_H_ROOT, TCA_KIND};
use crate::step;

/// Of 27 instances, each with as many guests as have a class.
const GUESTS: u32 = 27 << 10;

/// The program at an uplink, with the rates that it knows.
pub struct Departures<'a> {
    socket: &'a Socket,
    interface: u32,
    rates: bpf::Map,
}

/// The program at an uplink; `None` if it is not there, or is that of a Holm with another map.
pub fn find(socket: &Socket, interface: u32) -> Result<Option<Departures<'_>>, Error> {
    let rates = classifier::map(socket, interface, Packets::Sent, &DEPARTURE_PROGRAM)
        .map_err(|source| fail(socket, interface, source))?;
    let rates = rates.filter(|rates| rates.sizes() == Map::Departures.sizes());
    Ok(rates.map(|rates| Departures { socket, interface, rates }))
}

/// Makes the qdiscs unless they are the `root`, and attaches the program unless it is; `None` if
/// the uplink has one queue only or classifiers of another program, or the kernel has no fq.
pub fn make<'a>(
    socket: &'a Socket,
    interface: u32,
    root: &Root,
) -> Result<Option<Departures<'a>>, Error> {
    let attached = find(socket, interface)?;
    if attached.is_some() && *root == Root::Departures {
        return Ok(attached);
    }
    let queues = link::tx_queues(socket, interface)?;
    if queues < 2
        || attached.is_none() && !classifier::is_free(socket, interface)?
        || !make_qdiscs(socket, interface, queues)?
    {
        return Ok(None);
    }
    step::done("departures-qdiscs");
    if attached.is_some() {
        return Ok(attached);
    }
    let kind = MapKind::Hash(GUESTS);
    let rates = bpf::Map::create(Map::Departures.name(), kind, Map::Departures.sizes())
        .and_then(|rates| {
            classifier::attach(socket, interface, Packets::Sent, &DEPARTURE_PROGRAM, &rates)?;
            Ok(rates)
        })
        .map_err(|source| fail(socket, interface, source))
        .inspect_err(|_| {
            let _ = root::remove(socket, interface, DEPARTURES);
        })?;
    Ok(Some(Departures { socket, interface, rates }))
}

/// One fq for each queue, below mq; `false` if the kernel has not both.
fn make_qdiscs(socket: &Socket, interface: u32, queues: u32) -> Result<bool, Error> {
    let mut batch = Batch::default();
    let mut qdisc = |handle, parent, kind| {
        batch
            .message(Request::MakeQdisc, RTM_NEWQDISC, CREATE, &header(interface, handle, parent))
            .text(TCA_KIND, kind);
    };
    qdisc(DEPARTURES, TC_H_ROOT, "mq");
    for queue in 1..=queues {
        qdisc(0, DEPARTURES | queue, "fq");
    }
    match socket.execute(&mut batch) {
        Ok(()) => Ok(true),
        Err(Refused { errno: Errno::NOENT | Errno::OPNOTSUPP, .. }) => {
            root::remove(socket, interface, DEPARTURES)?;
            Ok(false)
        }
        Err(refused) => Err(refused.into()),
    }
}

impl Departures<'_> {
    /// Sets how fast a class sends, in bits in a second.
    pub fn set(&self, class: u32, cap: u64) -> Result<(), Error> {
        let value = cap_value(cap / 8);
        self.rates.update(&class.to_ne_bytes(), &value).map_err(|source| self.fail(source))
    }

    /// How fast a class sends, in bits in a second.
    pub fn rate(&self, class: u32) -> Result<Option<u64>, Error> {
        let value = self.rates.get(&class.to_ne_bytes()).map_err(|source| self.fail(source))?;
        Ok(value.map(|value| cap_rate(&value) * 8))
    }

    /// The classes that it knows.
    pub fn classes(&self) -> Result<Vec<u32>, Error> {
        let keys = self.rates.keys().map_err(|source| self.fail(source))?;
        Ok(keys.into_iter().filter_map(|key| key.try_into().ok().map(u32::from_ne_bytes)).collect())
    }

    /// Forgets a class; succeeds if it is not known.
    pub fn forget(&self, class: u32) -> Result<(), Error> {
        self.rates.delete(&class.to_ne_bytes()).map(drop).map_err(|source| self.fail(source))
    }

    /// Removes the program.
    pub fn detach(self) -> Result<(), Error> {
        classifier::detach(self.socket, self.interface, Packets::Sent)
    }

    fn fail(&self, source: io::Error) -> Error {
        fail(self.socket, self.interface, source)
    }
}

fn fail(socket: &Socket, index: u32, source: io::Error) -> Error {
    let name = link::name(socket, index).ok().flatten();
    let interface = name.unwrap_or_else(|| format!("interface {index}"));
    Error::InterfaceProgram { interface, task: "keeps guests to their net.cap", source }
}
