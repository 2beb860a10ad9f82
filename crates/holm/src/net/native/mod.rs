//! `net.mode = "native"`: the host's network namespace, with addresses that are the guest's alone
//! (`VServer`'s network isolation, OLS 2007, 2.2.3).
//!
//! The guest's processes use the host's network stack itself. BPF programs ([`holm_bpf`]) on the
//! cgroup of the Holm root see to it that each guest binds to, connects from and is reached at its
//! own addresses. They are loaded by the first native guest that starts, and
//! are there until the last has ended; each guest is one entry in a map, by the id of its cgroup.
//!
//! ```text
//! /run/holm/N/native.lock   locked while programs and entries are made and removed
//! /run/holm/N/bpf/          a bpf filesystem:
//!   guests owners           maps: each guest by its cgroup; the cgroup that has an address
//!   listeners               map: sockets that listen
//!   any elsewhere           maps: sockets bound to "any"; those in namespaces of guests
//!   asked                   map: at which address a client has asked by UDP
//!   bind4 bind6 ...         links, one for each program
//!   steer steer-INDEX       the program that is attached to interfaces; a link for each of these
//! ```

mod entry;
mod loopback;
mod programs;

use std::net::IpAddr;

pub use entry::{admit, destroy, dismiss};

use super::error::Error;
use super::mode::Mode;
use super::netlink::Socket;
use super::route;
use crate::config::Net;
use crate::record::Network;

pub struct Native;

impl Mode for Native {
    fn has_own_namespace(&self) -> bool {
        false
    }

    fn complete(&self, network: &mut Network, _settings: &Net) -> Result<(), Error> {
        let socket = Socket::route()?;
        network.native.iter().try_for_each(|address| {
            check_address(*address)?;
            check_is_hosts(&socket, *address)
        })
    }
}

/// Refuses an address that no native guest can have.
pub fn check_address(address: IpAddr) -> Result<(), Error> {
    let is_loopback = match address {
        // What the networks of guests leave of 127.0.0.0/8 are addresses as any others.
        IpAddr::V4(v4) => v4.is_loopback() && v4 <= loopback::LAST,
        IpAddr::V6(v6) => v6.is_loopback(),
    };
    let why = match address {
        _ if is_loopback => "it is the loopback of the host or of a guest",
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => "it is an IPv4 address in IPv6 notation",
        IpAddr::V6(v6) if v6.is_unicast_link_local() => "it is valid on one link only",
        _ => return Ok(()),
    };
    Err(Error::BadAddress { address, why })
}

/// Refuses an address that this host does not have.
fn check_is_hosts(socket: &Socket, address: IpAddr) -> Result<(), Error> {
    if route::is_local(socket, address)? { Ok(()) } else { Err(Error::NotHosts { address }) }
}
