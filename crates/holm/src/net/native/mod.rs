//! `net.mode = "native"`: the host's network namespace, with addresses that are the guest's alone
//! (`VServer`'s network isolation, OLS 2007, 2.2.3).
//!
//! The guest's processes use the host's network stack itself. BPF programs ([`holm_bpf`]) on the
//! cgroup of the Holm root see to it that each guest binds to, connects from and is reached at its
//! own addresses. They are loaded by the first native guest that starts, and
//! are there until the last has ended; each guest is one entry in a map, by the id of its cgroup.
//!
//! ```text
//! /run/holm/hidden/         see `lists`
//! /run/holm/native.lock     locked while programs and entries are made and removed
//! /run/holm/N/bpf/          a bpf filesystem:
//!   build-DIGEST            a directory that names the build whose programs these are
//!   guests owners           maps: each guest by its cgroup; the cgroup that has an address
//!   listeners               map: sockets that listen
//!   listening counted       maps: how many of a guest; those that are counted
//!   held makers             maps: how many sockets a guest has made; whose each of them is
//!   counters                map: what a guest has sent and received
//!   caps                    map: how fast a guest may receive
//!   any elsewhere           maps: sockets bound to "any"; those in namespaces of guests
//!   sharing names           maps: sockets of guests that share an address; Unix sockets of guests
//!   asked                   map: at which address a client has asked by UDP
//!   tracking                map: whether the host tracks connections
//!   told                    map: when a guest has told a client something by itself
//!   unserved                map: addresses and ports that were asked by UDP, and are nobody's
//!   searching               map: whether a CPU looks for a socket, whatever is noted there
//!   hosts                   map: those at which the host has sent a datagram to a guest
//!   bind4 bind6 ...         links, one for each program; unix_... only where `unix` says
//!   steer steer-INDEX       the program that is attached to interfaces; a link for each of these
//!   everywhere              a directory that is there when it is attached to all
//! ```

mod btf;
mod directory;
mod entry;
mod interface;
mod kinds;
mod lists;
mod loopback;
mod programs;
mod tracked;
mod unix;

use std::net::IpAddr;

pub use entry::{admit, change, destroy, dismiss, id, ids, receive_at_most, traffic};
pub use programs::{are_loaded, steer_everywhere, steer_from};
pub use tracked::{bound, forget_flows, is_on as is_tracking, tell_flows, tells_flows};
pub use unix::are_apart as are_unix_names_apart;

use super::error::Error;
use super::link;
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

    fn complete(&self, network: &mut Network, settings: &Net) -> Result<(), Error> {
        let socket = Socket::route()?;
        let interface =
            settings.interface.as_deref().map(|name| find(&socket, name)).transpose()?;
        for &address in &network.native {
            check_address(address)?;
            if let Some(has_it) = route::local_interface(&socket, address)? {
                if entry::is_added_for_others(network, address)? {
                    network.added.push((has_it, address));
                }
                continue;
            }
            let Some(interface) = interface else { return Err(Error::NotHosts { address }) };
            if route::is_taken(&socket, address)? {
                return Err(Error::AddressTaken { address });
            }
            network.added.push((interface, address));
        }
        Ok(())
    }

    fn is_attached(&self, network: &Network) -> Result<bool, Error> {
        let Some(&first) = network.native.first() else { return Ok(false) };
        Ok(route::is_local(&Socket::route()?, first)?)
    }
}

fn find(socket: &Socket, name: &str) -> Result<u32, Error> {
    link::index(socket, name)?.ok_or_else(|| Error::NoInterface { interface: name.to_owned() })
}

/// The addresses of a guest that runs, after they were set to others; `None` if only its next start
/// can make that change. The first of each family stays the first: programs are bound to it that
/// have asked for any.
pub fn in_order(running: &[IpAddr], set: &[IpAddr]) -> Option<Vec<IpAddr>> {
    let first =
        |of: &[IpAddr], v4: bool| of.iter().copied().find(|address| address.is_ipv4() == v4);
    let mut all = Vec::new();
    for v4 in [true, false] {
        match first(running, v4) {
            Some(address) if set.contains(&address) => all.push(address),
            None if first(set, v4).is_none() => {}
            _ => return None,
        }
    }
    let others: Vec<_> = set.iter().copied().filter(|address| !all.contains(address)).collect();
    all.extend(others);
    Some(all)
}

/// The network of a guest that runs with these addresses, of which `added` are to be added to an
/// interface. Those that a start has added go with the guest all the same.
pub fn changed(running: &Network, native: Vec<IpAddr>, added: Vec<(u32, IpAddr)>) -> Network {
    let mut added = added;
    added.extend(running.added.iter().filter(|(_, address)| native.contains(address)));
    Network { native, added, ..running.clone() }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn the_first_addresses_stay_while_a_guest_runs() {
        let running = addresses("192.0.2.1 2001:db8::1 192.0.2.2");
        for refused in ["", "192.0.2.1", "2001:db8::1 192.0.2.2"] {
            assert_eq!(in_order(&running, &addresses(refused)), None, "{refused}");
        }
        let set = addresses("192.0.2.3 2001:db8::2 2001:db8::1 192.0.2.1");
        let expected = addresses("192.0.2.1 2001:db8::1 192.0.2.3 2001:db8::2");
        assert_eq!(in_order(&running, &set), Some(expected));
    }

    #[test]
    fn a_guest_without_addresses_gets_the_first_when_it_starts() {
        assert_eq!(in_order(&[], &addresses("192.0.2.1")), None);
        assert_eq!(in_order(&[], &[]), Some(Vec::new()));
    }
}
