//! How fast guests send through the uplink (`VServer`'s network `QoS`, OLS 2007, 2.2.5), by the
//! kernel's hierarchical token bucket, HTB.
//!
//! ```text
//! qdisc 486d: of the uplink
//!   486d:1                 the link, with its rate
//!     486d:2               the host, and guests without these settings: 5 % reserved, share 100
//!     486d:C               a guest; C is instance number * 1024 + context id
//!       qdisc C:           on a slow link: splits long packets
//!         qdisc            a queue for each connection, where the kernel has fq_codel
//! qdisc 486e: mq           instead of that, while guests have `net.cap` alone, of an uplink with
//!                          several queues: see `departures`
//!   qdisc fq               in each queue
//! /run/holm/shaping.lock   locked while they are made and removed
//! ROOT/uplink.toml         see `uplink`
//! ```
//!
//! A packet's class is its `skb->priority`: of native guests a BPF program sets it, of private ones
//! a rule in the ruleset. HTB serves what is reserved first, and divides the rest by quantum.

mod class;
mod departures;
mod htb;
mod root;
mod tbf;
mod uplink;

pub use class::class_id;
pub use tbf::receive_at_most;

use super::error::Error;
use super::lock;
use super::netlink::Socket;
use super::ports;
use crate::config::{Net, NetMode};
use crate::record::{Network, Shaping};
use root::{Root, root, uplinks};

/// Plans how fast a guest sends; `None` without any setting for it.
pub fn plan(instance: u8, net: &Net) -> Result<Option<Shaping>, Error> {
    let is_set = net.reserve.is_some() || net.share.is_some() || net.cap.is_some();
    if !is_set || !matches!(net.mode, NetMode::Private | NetMode::Native) {
        return Ok(None);
    }
    let uplink = uplink::find(&ports::root_link(instance))?;
    Ok(Some(Shaping {
        uplink: uplink.index,
        uplink_name: uplink.name,
        uplink_rate: uplink.rate,
        reserve: net.reserve,
        share: net.share,
        cap: net.cap,
    }))
}

/// Makes or changes a guest's class, and what is above it. Reads those of others if the guest has a
/// reservation.
pub fn add(network: &Network) -> Result<(), Error> {
    let Some(shaping) = &network.shaping else { return Ok(()) };
    let socket = Socket::route()?;
    let _lock = lock()?;
    let class = class_id(network.instance, network.context);
    let uplink = shaping.uplink;
    let root = root(&socket, uplink)?;
    if let Root::Other(kind) = root {
        let interface = shaping.uplink_name.clone();
        return Err(Error::OtherQdisc { interface, kind });
    }
    if let Some(cap) = cap_alone(shaping)
        && let Some(departures) = departures(&socket, uplink, &root)?
    {
        return departures.set(class, cap);
    }
    check_reserve(&socket, class, shaping)?;
    let capped = if root == Root::Departures { capped(&socket, uplink)? } else { Vec::new() };
    htb::make(&socket, uplink, shaping.uplink_rate, &root)?;
    for (class, cap) in capped {
        let alone = Shaping { reserve: None, share: None, cap: Some(cap), ..shaping.clone() };
        htb::set(&socket, class, &alone)?;
    }
    htb::set(&socket, class, shaping)
}

/// The cap of a guest that has nothing else.
fn cap_alone(shaping: &Shaping) -> Option<u64> {
    shaping.cap.filter(|_| shaping.reserve.is_none() && shaping.share.is_none())
}

/// What keeps guests to their caps alone, if it can at an uplink; it cannot beside HTB.
fn departures<'a>(
    socket: &'a Socket,
    uplink: u32,
    root: &Root,
) -> Result<Option<departures::Departures<'a>>, Error> {
    match root {
        Root::Departures | Root::Default => departures::make(socket, uplink, root),
        Root::Htb | Root::Other(_) => Ok(None),
    }
}

/// The classes that have a cap alone, which HTB is about to take over. If this is killed, the next
/// look at these guests sets their rates.
fn capped(socket: &Socket, uplink: u32) -> Result<Vec<(u32, u64)>, Error> {
    let Some(departures) = departures::find(socket, uplink)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for class in departures.classes()? {
        all.extend(departures.rate(class)?.map(|rate| (class, rate)));
    }
    departures.detach()?;
    Ok(all)
}

/// Whether a guest has its rate: another program may have removed the qdisc.
pub fn is_set(network: &Network) -> Result<bool, Error> {
    let Some(shaping) = &network.shaping else { return Ok(true) };
    let socket = Socket::route()?;
    let class = class_id(network.instance, network.context);
    if cap_alone(shaping).is_some() && root(&socket, shaping.uplink)? == Root::Departures {
        let departures = departures::find(&socket, shaping.uplink)?;
        let rate = departures.map_or(Ok(None), |departures| departures.rate(class))?;
        return Ok(rate.is_some());
    }
    htb::has_class(&socket, shaping.uplink, class)
}

/// Refuses to reserve more than the uplink has.
fn check_reserve(socket: &Socket, class: u32, shaping: &Shaping) -> Result<(), Error> {
    let Some(reserve) = shaping.reserve else { return Ok(()) };
    let others = htb::classes(socket, shaping.uplink)?;
    let reserved = others.iter().filter(|other| other.id != class).map(|other| other.reserve);
    let (host, reserved) = (class::of_host(shaping.uplink_rate), reserved.sum::<u64>());
    if reserve.saturating_add(reserved).saturating_add(host) <= shaping.uplink_rate {
        return Ok(());
    }
    Err(Error::OverReserved {
        reserve,
        interface: shaping.uplink_name.clone(),
        rate: shaping.uplink_rate,
        host,
        reserved,
    })
}

/// Removes a guest's class, and with the last one everything; succeeds if there is nothing to
/// remove.
pub fn remove(network: &Network) -> Result<(), Error> {
    let Some(shaping) = &network.shaping else { return Ok(()) };
    let socket = Socket::route()?;
    let _lock = lock()?;
    let class = class_id(network.instance, network.context);
    remove_classes(&socket, shaping.uplink, |id| id == class)
}

/// Removes the class of a guest of which no more is known.
pub fn remove_unrecorded(instance: u8, context: u32) -> Result<(), Error> {
    let class = class_id(instance, context);
    remove_everywhere(|id| id == class)
}

/// Removes the classes of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    remove_everywhere(|id| class::instance_of(id) == instance)
}

/// The context ids of an instance's guests that have a class.
pub fn contexts(socket: &Socket, instance: u8) -> Result<Vec<u32>, Error> {
    let mut all = Vec::new();
    for (uplink, root) in uplinks(socket)? {
        let classes = match root {
            Root::Htb => htb::ids(socket, uplink)?,
            _ => departures::find(socket, uplink)?.map_or(Ok(Vec::new()), |it| it.classes())?,
        };
        let own = classes.into_iter().filter(|class| class::instance_of(*class) == instance);
        all.extend(own.map(class::context_of));
    }
    Ok(all)
}

fn remove_everywhere(is_meant: impl Fn(u32) -> bool) -> Result<(), Error> {
    let socket = Socket::route()?;
    for (uplink, _) in uplinks(&socket)? {
        let _lock = lock()?;
        remove_classes(&socket, uplink, &is_meant)?;
    }
    Ok(())
}

/// Removes classes of an uplink, and with the last one everything.
fn remove_classes(
    socket: &Socket,
    uplink: u32,
    is_meant: impl Fn(u32) -> bool,
) -> Result<(), Error> {
    let split = |classes: Vec<u32>| -> (Vec<_>, Vec<_>) {
        classes.into_iter().partition(|class| is_meant(*class))
    };
    let root = root(socket, uplink)?;
    if root == Root::Htb {
        let (meant, others) = split(htb::ids(socket, uplink)?);
        meant.into_iter().try_for_each(|class| htb::remove(socket, uplink, class))?;
        return if others.is_empty() { root::remove(socket, uplink, class::HTB) } else { Ok(()) };
    }
    // Without their qdiscs too: another program may have removed these alone.
    if let Some(departures) = departures::find(socket, uplink)? {
        let (meant, others) = split(departures.classes()?);
        if !others.is_empty() {
            return meant.into_iter().try_for_each(|class| departures.forget(class));
        }
        departures.detach()?;
    }
    if root == Root::Departures {
        root::remove(socket, uplink, class::DEPARTURES)?;
    }
    Ok(())
}

fn lock() -> Result<std::fs::File, Error> {
    lock::lock(lock::common_path("shaping"), &"the rates of guests")
}
