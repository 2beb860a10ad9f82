//! Planning: what of `net.lan` depends on the host.

use crate::config::{Lan as Settings, LanKind, Net};
use crate::net::error::Error;
use crate::net::link::{self, Described};
use crate::net::netlink::Socket;
use crate::record::Lan;

/// Plans a guest's interfaces. `machine_id` is what their Ethernet addresses are made of: they are
/// the same at each start, and another guest's on another host are others.
pub fn plan(net: &Net, machine_id: &str) -> Result<Vec<Lan>, Error> {
    if net.lan.is_empty() {
        return Ok(Vec::new());
    }
    let socket = Socket::route()?;
    let each = |(at, settings): (usize, &Settings)| {
        let parent = &settings.parent;
        let wrong = |why: String| Error::Lan { parent: parent.clone(), why };
        let found = link::describe(&socket, parent)?.ok_or_else(|| {
            wrong("this host has no such interface (`ip link` lists them)".to_owned())
        })?;
        if let Some(why) = unfit(settings, &found) {
            return Err(wrong(why));
        }
        Ok(Lan {
            settings: settings.clone(),
            parent_index: found.index,
            mtu: found.mtu,
            ethernet: ethernet(machine_id, at),
        })
    };
    net.lan.iter().enumerate().map(each).collect()
}

/// Why a guest's interface of this kind cannot be on an interface of the host.
fn unfit(settings: &Settings, found: &Described) -> Option<String> {
    let Settings { kind, parent, .. } = settings;
    let is_bridge = found.kind.as_deref() == Some("bridge");
    match kind {
        LanKind::Bridge if !is_bridge => Some(format!(
            "it is not a bridge; name the one that {parent} is a port of, or write macvlan:{parent}"
        )),
        LanKind::Macvlan if !found.is_ethernet => Some("it is not an Ethernet interface".into()),
        LanKind::Macvlan if found.is_port => Some(
            "it is a port of a bridge or bond, and the kernel lets no macvlan on it; name that one"
                .to_owned(),
        ),
        _ => None,
    }
}

/// A locally administered Ethernet address: FNV-1a of the machine id, which is not to be published
/// itself (machine-id(5)), and the interface's place.
fn ethernet(machine_id: &str, at: usize) -> [u8; 6] {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let place = u8::try_from(at).unwrap_or_default();
    let bytes = machine_id.bytes().chain([place]);
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let [_, _, rest @ ..] = hash.to_be_bytes();
    let [first, ..] = rest;
    // Neither a group's address nor one that a vendor gives.
    [first & 0xfc | 2, rest[1], rest[2], rest[3], rest[4], rest[5]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_addresses_are_fixed() {
        let id = "0123456789abcdef0123456789abcdef";
        let one = ethernet(id, 0);
        assert_eq!(one, ethernet(id, 0));
        assert_eq!(one[0] & 3, 2);
        assert_ne!(one, ethernet(id, 1));
        assert_ne!(one, ethernet("1123456789abcdef0123456789abcdef", 0));
    }
}
