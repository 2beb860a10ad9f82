//! Whether a port may be published already, told from what the tables hold: a start among a
//! thousand guests reads no interface of theirs.

use super::elements::{elements, get, octets, port_key};
use super::table::{exists, was_loaded};
use crate::config::Publish;
use crate::net::error::Error;
use crate::net::netlink::Socket;
use crate::net::ports;
use crate::record::Network;

/// Whether another guest may have published one of a guest's ports; `false` is certain. Reads of
/// others at most which ports they publish on single addresses.
pub fn may_be_published(network: &Network) -> Result<bool, Error> {
    let netfilter = Socket::netfilter()?;
    for instance in ports::instances(network.instance)? {
        if !exists(&netfilter, instance)? {
            // Somebody deleted it: only the interfaces of its guests tell now.
            if instance == network.instance || was_loaded(instance) {
                return Ok(true);
            }
            continue;
        }
        for port in &network.publish {
            if is_taken(&netfilter, instance, port)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether an instance's table has an element in the way of a port.
fn is_taken(netfilter: &Socket, instance: u8, port: &Publish) -> Result<bool, Error> {
    let key = port_key(port);
    let on = port.host_ip.filter(|ip| !ip.is_unspecified());
    for (everywhere, at, v4) in
        [("tcp_udp_4", "tcp_udp_4_at", true), ("tcp_udp_6", "tcp_udp_6_at", false)]
    {
        if port.host_ip.is_some_and(|ip| ip.is_ipv4() != v4) {
            continue;
        }
        let taken = get(netfilter, instance, everywhere, &key)?.is_some()
            || match on {
                Some(ip) => {
                    get(netfilter, instance, at, &[octets(ip), key.clone()].concat())?.is_some()
                }
                None => elements(netfilter, instance, at)?.iter().any(|it| it.key.ends_with(&key)),
            };
        if taken {
            return Ok(true);
        }
    }
    Ok(false)
}
