//! The BPF programs of `net.mode = "native"`, of `net.lan` and of `net.cap`, compiled from the C
//! files beside this one, and the layout of what they read.
//!
//! `guests.h` says which address inside is which on the host, `calls.bpf.c` translates them in
//! system calls, `packets.bpf.c` decides which socket gets a packet, `unix.bpf.c` which abstract
//! Unix sockets are reached; `port.bpf.c` decides what a guest may send to a bridge,
//! `departures.bpf.c` when packets leave an uplink with several queues. Nothing here talks to the
//! kernel: [`PROGRAMS`] and the others are instructions with places for maps, which the loader
//! fills in.

#![forbid(unsafe_code)]

mod map;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use map::Map;
use map::{GUEST, TRAFFIC};

/// As many addresses of each family has a guest at most (`MOST` in `guests.h`).
pub const ADDRESSES_MAX: usize = 8;

/// One instruction, `struct bpf_insn`.
pub type Instruction = [u8; 8];

/// A program.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name, which is that of its hook.
    pub name: &'static str,
    /// Its instructions.
    pub instructions: &'static [Instruction],
    /// The instructions that load a map, by index, and which.
    pub maps: &'static [(usize, Map)],
}

/// All programs of native guests.
pub static PROGRAMS: &[Program] = include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// The programs about abstract Unix sockets, which are LSM programs: the name of each, and the
/// kernel's function that it is attached to.
pub const UNIX_HOOKS: [(&str, &str); 3] = [
    ("unix_connect", "bpf_lsm_unix_stream_connect"),
    ("unix_send", "bpf_lsm_unix_may_send"),
    ("unix_bind", "bpf_lsm_socket_bind"),
];

/// These programs. What instructions read at [`UNIX_ADDRESS`] they want to read where the kernel
/// has the member `addr` in its `struct unix_sock`.
pub static UNIX_PROGRAMS: &[Program] = include!(concat!(env!("OUT_DIR"), "/unix.rs"));

/// The place of a member that stands for the one of `addr` in `struct unix_sock`.
pub const UNIX_ADDRESS: u16 = 0x7ff0;

/// The program at a port of a bridge.
pub static PORT_PROGRAM: Program = only(include!(concat!(env!("OUT_DIR"), "/port.rs")));

/// The program at an uplink with several queues.
pub static DEPARTURE_PROGRAM: Program = only(include!(concat!(env!("OUT_DIR"), "/departures.rs")));

/// The program of a file that has one.
const fn only(table: &[Program]) -> Program {
    assert!(table.len() == 1);
    table[0]
}

/// What names of builds begin with.
pub const BUILD_PREFIX: &str = "build-";

/// A name for this build of the programs, which another build does not have.
pub const BUILD: &str = include!(concat!(env!("OUT_DIR"), "/build-name.rs"));

/// Where `shares`, `added` and `uncapped` are in it: before there was that, bytes of a count that
/// were 0.
const SHARES: usize = 33;

/// Where its IPv4 addresses are in it.
const OWN4: usize = 40;

/// What a guest has sent and received: `struct traffic`, of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Packets sent.
    pub sent_packets: u64,
    /// Their bytes, from the IP header on.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Their bytes, from the IP header on.
    pub received_bytes: u64,
    /// TCP connections that it has opened.
    pub opened: u64,
    /// TCP connections that it has accepted.
    pub accepted: u64,
    /// Packets dropped because their source was not one of its addresses.
    pub foreign_source: u64,
    /// Packets dropped because their destination was not one of its addresses.
    pub foreign_destination: u64,
    /// Packets dropped because they came faster than the guest may receive.
    pub over_cap: u64,
}

impl Traffic {
    /// The value in [`Map::Counters`] before anything is counted.
    pub const NONE: [u8; TRAFFIC as usize] = [0; TRAFFIC as usize];

    /// Adds up the values of all CPUs in [`Map::Counters`].
    pub fn of_all_cpus(values: &[u8]) -> Self {
        let mut sum = [0u64; 9];
        for value in values.chunks_exact(TRAFFIC as usize) {
            for (sum, field) in sum.iter_mut().zip(value.chunks_exact(8)) {
                *sum += field.try_into().map_or(0, u64::from_ne_bytes);
            }
        }
        let [sent_packets, sent_bytes, received_packets, received_bytes, rest @ ..] = sum;
        let [opened, accepted, foreign_source, foreign_destination, over_cap] = rest;
        Self {
            sent_packets,
            sent_bytes,
            received_packets,
            received_bytes,
            opened,
            accepted,
            foreign_source,
            foreign_destination,
            over_cap,
        }
    }
}

/// The value in [`Map::Caps`] of a guest that may receive so many bytes in a second, and in
/// [`Map::Departures`] of one that may send so many.
pub fn cap_value(rate: u64) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&rate.max(1).to_ne_bytes());
    value
}

/// The rate in such a value.
pub fn cap_rate(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |rate| u64::from_ne_bytes(*rate))
}

/// What the programs know of a guest: `struct guest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The cookie of the host's network namespace (`SO_NETNS_COOKIE`).
    pub netns: u64,
    /// The uid of guest root on the host.
    pub root: u32,
    /// The guest's own 127.0.0.0/24.
    pub loopback: Ipv4Addr,
    /// The guest's own `::1`.
    pub loopback6: Ipv6Addr,
    /// Its addresses, at most [`ADDRESSES_MAX`] of each family.
    pub addresses: Vec<IpAddr>,
    /// How it shares its IPv4 address with other guests; `None` if that is its alone.
    pub shared: Option<Shared>,
    /// Whether it has an entry in [`Map::Caps`].
    pub capped: bool,
}

/// An address that several guests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// The host has it only while one of them runs.
    pub added: bool,
}

impl Shared {
    /// That of a guest, by its value in [`Map::Guests`].
    pub fn of(guest: &[u8]) -> Option<Self> {
        match guest.get(SHARES..)? {
            [0, ..] | [_] | [] => None,
            [_, added, ..] => Some(Self { added: *added != 0 }),
        }
    }

    /// The address that a guest shares.
    pub fn address(guest: &[u8]) -> Option<IpAddr> {
        Self::of(guest)?;
        let first = guest.get(OWN4..)?.first_chunk::<4>()?;
        Some(Ipv4Addr::from(*first).into())
    }
}

impl Guest {
    /// The value in [`Map::Guests`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(GUEST as usize);
        bytes.extend(self.netns.to_ne_bytes());
        bytes.extend(self.root.to_ne_bytes());
        bytes.extend(self.loopback.octets());
        bytes.extend(self.loopback6.octets());
        append_addresses(&mut bytes, &self.addresses);
        if let Some(Shared { added }) = self.shared {
            bytes[SHARES] = 1;
            bytes[SHARES + 1] = added.into();
        }
        bytes[SHARES + 2] = (!self.capped).into();
        bytes
    }

    /// The keys in [`Map::Owners`] of all that belongs to the guest.
    pub fn owned(&self) -> Vec<[u8; 16]> {
        let own = self.addresses.iter().copied().map(owner_key);
        own.chain([network_key(self.loopback), owner_key(self.loopback6.into())]).collect()
    }
}

/// How many addresses there are of each family, and room for as many as there may be.
fn append_addresses(bytes: &mut Vec<u8>, addresses: &[IpAddr]) {
    let own4 = || addresses.iter().filter_map(|address| v4(*address)).take(ADDRESSES_MAX);
    let own6 = || addresses.iter().filter_map(|address| v6(*address)).take(ADDRESSES_MAX);
    for count in [own4().count(), own6().count()] {
        bytes.extend(u32::try_from(count).unwrap_or_default().to_ne_bytes());
    }
    let (fours, all) = (bytes.len() + ADDRESSES_MAX * 4, bytes.len() + ADDRESSES_MAX * 20);
    bytes.extend(own4().flat_map(|address| address.octets()));
    bytes.resize(fours, 0);
    bytes.extend(own6().flat_map(|address| address.octets()));
    bytes.resize(all, 0);
}

/// What a guest may send to a port of a bridge: `struct port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its Ethernet address there.
    pub ethernet: [u8; 6],
    /// Its addresses, at most [`ADDRESSES_MAX`] of each family; empty if it chooses them itself.
    pub addresses: Vec<IpAddr>,
}

impl Port {
    /// The value in [`Map::Port`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend(self.ethernet);
        bytes.extend(u16::from(!self.addresses.is_empty()).to_ne_bytes());
        append_addresses(&mut bytes, &self.addresses);
        bytes
    }

    /// How many packets were dropped, of a value in [`Map::Port`].
    pub fn dropped(value: &[u8]) -> u64 {
        value.first_chunk().map_or(0, |count| u64::from_ne_bytes(*count))
    }
}

/// The key in [`Map::Owners`] of a guest's loopback network.
pub fn network_key(network: Ipv4Addr) -> [u8; 16] {
    let mut key = owner_key(network.into());
    key[3] = 1;
    key
}

/// The key in [`Map::Owners`] of an address.
pub fn owner_key(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(v6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::PORT;

    #[test]
    fn all_programs_are_there() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        let expected = [
            "bind4",
            "bind6",
            "connect4",
            "connect6",
            "egress",
            "getpeername4",
            "getpeername6",
            "getsockname4",
            "getsockname6",
            "ingress",
            "recvmsg4",
            "recvmsg6",
            "sendmsg4",
            "sendmsg6",
            "sk_lookup",
            "sock_create",
            "sock_ops",
            "sock_release",
            "steer",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn programs_about_unix_sockets_have_a_hook_and_a_place_to_be_filled_in() {
        let names = |wanted: &str| UNIX_HOOKS.iter().any(|(name, _)| *name == wanted);
        assert_eq!(UNIX_PROGRAMS.len(), UNIX_HOOKS.len());
        assert!(UNIX_PROGRAMS.iter().all(|program| names(program.name)));
        for program in UNIX_PROGRAMS {
            // BPF_LDX | BPF_MEM | BPF_DW
            let is_read =
                |it: &&Instruction| it[0] == 0x79 && it[2..4] == UNIX_ADDRESS.to_le_bytes();
            let expected = usize::from(program.name != "unix_bind");
            assert_eq!(program.instructions.iter().filter(is_read).count(), expected);
        }
    }

    #[test]
    fn maps_are_loaded_by_two_instructions() {
        for program in
            PROGRAMS.iter().chain(UNIX_PROGRAMS).chain([&PORT_PROGRAM, &DEPARTURE_PROGRAM])
        {
            for (at, map) in program.maps {
                // BPF_LD | BPF_IMM | BPF_DW
                assert_eq!(program.instructions[*at][0], 0x18, "{} {map:?}", program.name);
            }
        }
    }

    #[test]
    fn a_cap_is_read_as_it_was_written() {
        let program = DEPARTURE_PROGRAM;
        assert!(program.maps.iter().all(|(_, map)| *map == Map::Departures), "{:?}", program.maps);
        assert_eq!(cap_rate(&cap_value(1_000_000)), 1_000_000);
    }

    #[test]
    fn a_port_has_the_layout_of_its_program() {
        let program = PORT_PROGRAM;
        assert!(program.maps.iter().all(|(_, map)| *map == Map::Port), "{:?}", program.maps);
        let addresses = vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        let bytes = Port { ethernet: [2, 3, 4, 5, 6, 7], addresses }.to_bytes();
        assert_eq!(bytes.len(), PORT as usize);
        assert_eq!(bytes[8..16], [&[2, 3, 4, 5, 6, 7], &1u16.to_ne_bytes()[..]].concat()[..]);
        assert_eq!(bytes[24..28], [192, 0, 2, 7]);
        assert_eq!(bytes[56..58], [0x20, 0x01]);
    }

    #[test]
    fn a_guest_has_the_layout_of_the_programs() {
        let guest = Guest {
            netns: 7,
            root: 100_000,
            loopback: Ipv4Addr::new(127, 5, 6, 0),
            loopback6: "fd00::1".parse().unwrap(),
            addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::2".parse().unwrap()],
            shared: None,
            capped: true,
        };
        let bytes = guest.to_bytes();
        assert_eq!(bytes.len(), GUEST as usize);
        assert_eq!(bytes[..8], 7u64.to_ne_bytes());
        assert_eq!(bytes[12..16], [127, 5, 6, 0]);
        assert_eq!(bytes[32..40], [1u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat()[..]);
        assert_eq!(bytes[40..44], [10, 0, 0, 1]);
        assert_eq!(bytes[72], 0xfd);
        assert_eq!(guest.owned().len(), 4);
        assert_eq!(Shared::of(&bytes), None);
        for shared in [Shared { added: false }, Shared { added: true }] {
            let bytes = Guest { shared: Some(shared), ..guest.clone() }.to_bytes();
            assert_eq!(bytes[32..36], [1, 1, shared.added.into(), 0]);
            assert_eq!(Shared::of(&bytes), Some(shared));
            assert_eq!(Shared::address(&bytes), Some(guest.addresses[0]));
        }
    }
}
