//! The part of a private guest's plan that depends on the host.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use super::super::error::Error;
use super::super::netlink::Socket;
use super::super::plan::MTU_DEFAULT;
use super::super::published::{ALIAS_MAX, Published, overlap};
use super::super::{ports, route};
use super::taken;
use crate::config::{Net, Proto, Publish};
use crate::failed::read_if_there;
use crate::record::Network;

/// The smallest MTU with IPv6 (RFC 8200), in bytes.
const MTU_MIN: u32 = 1280;

/// The port of `sshd`.
const SSH: u16 = 22;

/// Adds the MTU and the published ports to a plan, and checks that the ports are free.
pub fn complete(network: &mut Network, net: &Net) -> Result<(), Error> {
    network.publish.clone_from(&net.publish);
    if let Some(range) = net.ports {
        add_range(&mut network.publish, ports::range(network.instance, network.context, range));
    }
    let socket = Socket::route()?;
    for address in &net.address {
        check_not_hosts(&socket, *address)?;
    }
    network.mtu = route::uplink_mtu(&socket)?.unwrap_or(MTU_DEFAULT).clamp(MTU_MIN, 65535);
    if !has_ipv6()? {
        network.guest_v6 = None;
    }
    let length = Published::of(network).alias().len();
    if length > ALIAS_MAX {
        return Err(Error::TooManyPorts { length });
    }
    if network.publish.is_empty() {
        return Ok(());
    }
    ports::check_own(network)?;
    if taken::may_be_published(network)? {
        ports::check_guests(&socket, network)?;
    }
    ports::check_host(network)
}

/// Publishes a range of ports: each leads to the guest's port of the same number, and the lowest
/// of TCP to its ssh. Those that are published already lead where they led.
fn add_range(publish: &mut Vec<Publish>, range: RangeInclusive<u16>) {
    let first = *range.start();
    for (host_port, proto) in range.flat_map(|port| [(port, Proto::Tcp), (port, Proto::Udp)]) {
        let is_ssh = host_port == first && proto == Proto::Tcp;
        let guest_port = if is_ssh { SSH } else { host_port };
        let added = Publish { host_ip: None, host_port, guest_port, proto };
        if !publish.iter().any(|port| overlap(port, &added)) {
            publish.push(added);
        }
    }
}

/// Refuses an address that the host has itself, which one request for its route tells, however many
/// interfaces there are.
pub fn check_not_hosts(socket: &Socket, address: IpAddr) -> Result<(), Error> {
    if route::is_local(socket, address)? { Err(Error::HostsAddress { address }) } else { Ok(()) }
}

fn has_ipv6() -> Result<bool, Error> {
    const DISABLED: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
    let text = read_if_there(Path::new(DISABLED))?;
    Ok(text.is_some_and(|text| text.starts_with('0')))
}
