//! The keys of a guest's network.

use super::super::choices::MODES;
use super::super::input::{choice, choice_name, each, flag, one, shown};
use super::super::key::Effect::{Live, NextStart};
use super::super::key::{Key, Kind};
use super::super::{units, values};

pub const KEYS: [Key; 19] = [
    Key {
        name: "net.mode",
        kind: Kind::Choice(&["private", "native", "none", "host"]),
        default: "private",
        effect: NextStart,
        help: "an own network stack behind the host's address, the host's stack with addresses of \
               its own, only loopback, or the host's stack",
        set: |c, i| choice(i, &MODES).map(|v| c.net.mode = v),
        show: |c, _| choice_name(c.net.mode, &MODES),
    },
    Key {
        name: "net.address",
        kind: Kind::List("10.97.0.5"),
        default: "from Holm's pool",
        effect: NextStart,
        help: "fixed addresses: of a private guest at most one IPv4 and one IPv6; of a native one \
               up to eight of each of the host's, which change at once if the first stays",
        set: |c, i| each(i, values::address).map(|v| c.net.address = v),
        show: |c, _| c.net.address.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.interface",
        kind: Kind::Text,
        default: "none: the host has the addresses",
        effect: NextStart,
        help: "interface of the host that has the addresses of a native guest while it runs",
        set: |c, i| one(i, values::interface).map(|v| c.net.interface = Some(v)),
        show: |c, _| shown(c.net.interface.as_ref(), Clone::clone),
    },
    Key {
        name: "net.share-address",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "other native guests with this set have the IPv4 address of a native guest too, and so \
               has the host: a port is of whoever takes it first",
        set: |c, i| flag(i).map(|v| c.net.share_address = v),
        show: |c, _| vec![c.net.share_address.to_string()],
    },
    Key {
        name: "net.hide-sockets",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "a native guest cannot list the sockets of the host and of other guests; while it runs, \
               only root can read the lists in the host's /proc/net",
        set: |c, i| flag(i).map(|v| c.net.hide_sockets = v),
        show: |c, _| vec![c.net.hide_sockets.to_string()],
    },
    Key {
        name: "net.publish",
        kind: Kind::List("8080:80/tcp"),
        default: "none",
        effect: NextStart,
        help: "host ports that lead into the guest: [ADDRESS:]HOST:GUEST[/tcp|/udp], also ranges",
        set: |c, i| each(i, values::publish).map(|v| c.net.publish = v.concat()),
        show: |c, _| c.net.publish.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.ports",
        kind: Kind::Text,
        default: "none",
        effect: NextStart,
        help: "host ports that lead to the same ports of the guest, the lowest to its ssh: auto:32, \
               the same at each start, or FIRST-LAST",
        set: |c, i| one(i, values::ports).map(|v| c.net.ports = Some(v)),
        show: |c, _| shown(c.net.ports, |v| v.to_string()),
    },
    Key {
        name: "net.peers",
        kind: Kind::Bool,
        default: "true",
        effect: NextStart,
        help: "it and other guests may reach each other",
        set: |c, i| flag(i).map(|v| c.net.peers = v),
        show: |c, _| vec![c.net.peers.to_string()],
    },
    Key {
        name: "net.host-access",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "it may reach services of the host, by any address of the host but loopback",
        set: |c, i| flag(i).map(|v| c.net.host_access = v),
        show: |c, _| vec![c.net.host_access.to_string()],
    },
    Key {
        name: "net.deny",
        kind: Kind::List("out:tcp:25"),
        default: "none",
        effect: Live,
        help: "connections that are refused, or dropped if others open them: in or out, then \
               [:tcp|:udp|:icmp][:PORT|:FIRST-LAST][@ADDRESS|@NETWORK], as in:tcp:22@203.0.113.0/24",
        set: |c, i| each(i, values::access_rule).map(|v| c.net.deny = v),
        show: |c, _| c.net.deny.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.allow",
        kind: Kind::List("out:tcp:443"),
        default: "none",
        effect: Live,
        help: "exceptions from net.deny, in the same form",
        set: |c, i| each(i, values::access_rule).map(|v| c.net.allow = v),
        show: |c, _| c.net.allow.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.flows",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "the connections that a guest opens from an address that is not its alone are recorded, \
               for `holm flows`: from which port, to whom, and when",
        set: |c, i| flag(i).map(|v| c.net.flows = v),
        show: |c, _| vec![c.net.flows.to_string()],
    },
    Key {
        name: "net.lan",
        kind: Kind::List("bridge:br0@192.0.2.7/24"),
        default: "none",
        effect: NextStart,
        help: "interfaces of its own in the host's networks, each bridge:NAME or macvlan:NAME, then \
               maybe its addresses, each with @; without them the guest gets some itself (DHCP)",
        set: |c, i| each(i, values::lan).map(|v| c.net.lan = v),
        show: |c, _| c.net.lan.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.gateway",
        kind: Kind::List("192.0.2.1"),
        default: "none",
        effect: NextStart,
        help: "routers of a guest whose only network is net.lan, one of each family, in the network \
               of an address there",
        set: |c, i| each(i, values::address).map(|v| c.net.gateway = v),
        show: |c, _| c.net.gateway.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.names",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "its name, as NAME.holm and NAME, resolves in the other guests that have this set, and \
               theirs in it, while they run: /etc/hosts is Holm's then",
        set: |c, i| flag(i).map(|v| c.net.names = v),
        show: |c, _| vec![c.net.names.to_string()],
    },
    Key {
        name: "net.dns",
        kind: Kind::List("192.0.2.53"),
        default: "the host's",
        effect: NextStart,
        help: "name servers",
        set: |c, i| each(i, values::address).map(|v| c.net.dns = v),
        show: |c, _| c.net.dns.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.reserve",
        kind: Kind::Rate,
        default: "none",
        effect: Live,
        help: "rate at which it can always send through the uplink; alone it is also the cap",
        set: |c, i| one(i, units::rate).map(|v| c.net.reserve = Some(v)),
        show: |c, _| shown(c.net.reserve, units::show_rate),
    },
    Key {
        name: "net.share",
        kind: Kind::Count,
        default: "none; 100 with net.cap alone",
        effect: Live,
        help: "weight, 1 to 1000, against others that send more than is reserved for them",
        set: |c, i| {
            let share = one(i, |t| units::count(t, 1, 1000))?;
            c.net.share = u32::try_from(share).ok();
            Ok(())
        },
        show: |c, _| shown(c.net.share, |v| v.to_string()),
    },
    Key {
        name: "net.cap",
        kind: Kind::Rate,
        default: "none",
        effect: Live,
        help: "at most so fast it sends through the uplink, and receives",
        set: |c, i| one(i, units::rate).map(|v| c.net.cap = Some(v)),
        show: |c, _| shown(c.net.cap, units::show_rate),
    },
];
