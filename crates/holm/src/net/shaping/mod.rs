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
//! /run/holm/shaping.lock   locked while they are made and removed
//! ROOT/uplink.toml         see `uplink`
//! ```
//!
//! A packet's class is its `skb->priority`: of native guests a BPF program sets it, of private ones
//! a rule in the ruleset. HTB serves what is reserved first, and divides the rest by quantum.

mod class;
mod htb;
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
use htb::Root;

/// Plans how fast a guest sends; `None` without any setting for it.
pub fn plan(instance: u8, net: &Net) -> Result<Option<Shaping>, Error> {
    let is_set = net.reserve.is_some() || net.share.is_some() || net.cap.is_some();
    if !is_set || !matches!(net.mode, NetMode::Private | NetMode::Native) {
        return Ok(None);
    }
    let uplink = uplink::find(&ports::root_link(instance))?;
    let share = match net.reserve {
        None => Some(net.share.unwrap_or(class::SHARE_DEFAULT)),
        Some(_) => net.share,
    };
    Ok(Some(Shaping {
        uplink: uplink.index,
        uplink_name: uplink.name,
        uplink_rate: uplink.rate,
        reserve: net.reserve,
        share,
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
    let root = htb::root(&socket, shaping.uplink)?;
    if let Root::Other(kind) = root {
        let interface = shaping.uplink_name.clone();
        return Err(Error::OtherQdisc { interface, kind });
    }
    check_reserve(&socket, class, shaping)?;
    htb::make(&socket, shaping.uplink, shaping.uplink_rate, root == Root::Ours)?;
    htb::set(&socket, class, shaping)
}

/// Whether a guest has its class: another program may have removed the qdisc.
pub fn is_set(network: &Network) -> Result<bool, Error> {
    let Some(shaping) = &network.shaping else { return Ok(true) };
    let class = class_id(network.instance, network.context);
    htb::has_class(&Socket::route()?, shaping.uplink, class)
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
    remove_class(&socket, shaping.uplink, class_id(network.instance, network.context))
}

/// Removes the class of a guest of which no more is known.
pub fn remove_unrecorded(instance: u8, context: u32) -> Result<(), Error> {
    let socket = Socket::route()?;
    for uplink in htb::uplinks(&socket)? {
        let _lock = lock()?;
        remove_class(&socket, uplink, class_id(instance, context))?;
    }
    Ok(())
}

/// Removes the classes of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    let socket = Socket::route()?;
    for uplink in htb::uplinks(&socket)? {
        let _lock = lock()?;
        for class in htb::classes(&socket, uplink)? {
            if class::instance_of(class.id) == instance {
                htb::remove(&socket, uplink, class.id)?;
            }
        }
        remove_if_unused(&socket, uplink)?;
    }
    Ok(())
}

/// The context ids of an instance's guests that have a class.
pub fn contexts(socket: &Socket, instance: u8) -> Result<Vec<u32>, Error> {
    let mut all = Vec::new();
    for uplink in htb::uplinks(socket)? {
        let classes = htb::classes(socket, uplink)?.into_iter().map(|class| class.id);
        let own = classes.filter(|class| class::instance_of(*class) == instance);
        all.extend(own.map(class::context_of));
    }
    Ok(all)
}

fn remove_class(socket: &Socket, uplink: u32, class: u32) -> Result<(), Error> {
    htb::remove(socket, uplink, class)?;
    remove_if_unused(socket, uplink)
}

fn remove_if_unused(socket: &Socket, uplink: u32) -> Result<(), Error> {
    if htb::root(socket, uplink)? == Root::Ours && htb::classes(socket, uplink)?.is_empty() {
        htb::destroy(socket, uplink)?;
    }
    Ok(())
}

fn lock() -> Result<std::fs::File, Error> {
    lock::lock(lock::common_path("shaping"), &"the rates of guests")
}
