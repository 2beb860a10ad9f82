//! The packet filter rules of an instance: one nftables table of its own.
//!
//! The rules name interface groups, never single guests, so a guest without published ports changes nothing in them. They
//! are written once per boot by the `nft` program; elements of published ports go straight to the kernel.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::netlink::{Attributes, Batch, CREATE, DUMP, Socket, find};
use super::plan::{GATEWAY_V4, GROUP_ALONE, GROUP_OPEN, host_prefix, pool};
use super::publish::Published;
use super::{Error, link};
use crate::config::{Proto, Publish};
use crate::record::Network;

/// Name of an instance's table, of family `inet`.
pub fn table(instance: u8) -> String {
    format!("holm-{instance}")
}

/// The rules of an instance. `resolver` is the host's loopback resolver when guests have to be led to it.
fn ruleset(instance: u8, resolver: Option<Ipv4Addr>) -> String {
    let mine = format!("\"{}*\"", host_prefix(instance));
    let (v4, v6) = pool(instance);
    let guests = format!("{{ {GROUP_OPEN}, {GROUP_ALONE} }}");
    let dns = resolver.map_or(String::new(), |resolver| {
        format!("iifname {mine} ip daddr {GATEWAY_V4} meta l4proto {{ tcp, udp }} th dport 53 dnat ip to {resolver}")
    });
    format!(
        r#"
  map tcp_udp_4 {{ type inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_4_at {{ type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_6 {{ type inet_proto . inet_service : ipv6_addr . inet_service; }}
  map tcp_udp_6_at {{ type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service; }}
  set self_4 {{ type ipv4_addr . ipv4_addr; }}
  set self_6 {{ type ipv6_addr . ipv6_addr; }}
  # Before connection tracking translates replies back, so that what really comes from a guest is seen.
  chain from_guests {{
    type filter hook prerouting priority raw; policy accept;
    iifname {mine} goto one_guest
  }}
  chain one_guest {{
    udp dport 67 drop comment "the guest's monitor answers DHCP"
    ip daddr 127.0.0.0/8 drop
    ip6 daddr ::1 drop
    icmpv6 type {{ nd-router-advert, nd-redirect }} drop
    icmp type redirect drop
    fib saddr . iif oif missing drop comment "not the guest's own address"
  }}
  chain published {{
    type nat hook prerouting priority dstnat; policy accept;
    {dns}
    fib daddr type local meta l4proto {{ tcp, udp }} goto lookup
  }}
  chain published_here {{
    type nat hook output priority -100; policy accept;
    ip6 daddr ::1 return comment "refused at once: the kernel routes no answer to ::1"
    fib daddr type local meta l4proto {{ tcp, udp }} goto lookup
  }}
  chain lookup {{
    meta nfproto ipv4 dnat ip to ip daddr . meta l4proto . th dport map @tcp_udp_4_at
    meta nfproto ipv4 dnat ip to meta l4proto . th dport map @tcp_udp_4
    meta nfproto ipv6 dnat ip6 to ip6 daddr . meta l4proto . th dport map @tcp_udp_6_at
    meta nfproto ipv6 dnat ip6 to meta l4proto . th dport map @tcp_udp_6
  }}
  # A loopback resolver answers local senders only.
  chain to_resolver {{
    type nat hook input priority 100; policy accept;
    iifname {mine} ip daddr 127.0.0.0/8 snat ip to 127.0.0.1
  }}
  chain source {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname {mine} ip saddr 127.0.0.0/8 masquerade
    oifname {mine} ip6 saddr ::1 masquerade
    oifname {mine} ip saddr . ip daddr @self_4 masquerade
    oifname {mine} ip6 saddr . ip6 daddr @self_6 masquerade
    oifgroup {guests} accept
    ip saddr {v4}/16 masquerade
    ip6 saddr {v6}/64 masquerade
  }}
  chain between {{
    type filter hook forward priority filter; policy accept;
    iifname {mine} iifgroup {GROUP_ALONE} oifgroup {guests} goto alone
    oifname {mine} oifgroup {GROUP_ALONE} iifgroup {guests} goto alone
    oifname {mine} iifgroup != {guests} ct state new ct status ! dnat ip daddr {v4}/16 drop
    oifname {mine} iifgroup != {guests} ct state new ct status ! dnat ip6 daddr {v6}/64 drop
  }}
  chain alone {{
    ip saddr . ip daddr @self_4 accept
    ip6 saddr . ip6 daddr @self_6 accept
    drop
  }}
"#
    )
}

/// What the mark of every Holm's rules begins with.
const MARK: &str = "holm ";

/// A mark of the rules' text, kept as the table's comment: other rules are replaced, equal ones left alone.
fn mark(rules: &str) -> String {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    format!("{MARK}{:016x}", hasher.finish())
}

/// `nfgenmsg` of family `inet`.
const INET: [u8; 4] = [1, 0, 0, 0];
// Message types: subsystem 10 in the high byte.
const NEWSETELEM: u16 = 0x0a0c;
const GETSETELEM: u16 = 0x0a0d;
const DELSETELEM: u16 = 0x0a0e;

const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
const LIST_ELEM: u16 = 1;
const ELEM_KEY: u16 = 1;
const ELEM_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;

/// All sets and maps of the table.
const SETS: [&str; 6] =
    ["tcp_udp_4", "tcp_udp_4_at", "tcp_udp_6", "tcp_udp_6_at", "self_4", "self_6"];

/// Whether the instance's table is there with this mark.
fn is_current(netfilter: &Socket, instance: u8, mark: &str) -> Result<bool, Error> {
    const GETTABLE: u16 = 0x0a01;
    const TABLE_NAME: u16 = 1;
    const TABLE_USERDATA: u16 = 6;
    let mut batch = Batch::default();
    batch
        .message("looking for the nftables table", GETTABLE, 0, &INET)
        .text(TABLE_NAME, &table(instance));
    let mut current = false;
    match netfilter.ask(&batch, |_, payload| {
        let comment = payload
            .get(4..)
            .and_then(|attributes| find(attributes, TABLE_USERDATA))
            .unwrap_or_default();
        current = comment.windows(mark.len()).any(|bytes| bytes == mark.as_bytes());
    }) {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(current),
    }
}

/// Whether the instance's table is there, of whichever Holm.
pub fn is_there(instance: u8) -> Result<bool, Error> {
    is_current(&Socket::netfilter()?, instance, MARK)
}

/// Makes the instance's table where it is missing or different, with the published ports of all its guests.
pub fn ensure(route: &Socket, instance: u8, resolver: Option<Ipv4Addr>) -> Result<(), Error> {
    let rules = ruleset(instance, resolver);
    let mark = mark(&rules);
    let netfilter = Socket::netfilter()?;
    if is_current(&netfilter, instance, &mark)? {
        return Ok(());
    }
    let _lock = lock(instance)?;
    if is_current(&netfilter, instance, &mark)? {
        return Ok(());
    }
    let table = table(instance);
    run(
        &table,
        &format!(
            "table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n  comment \"{mark}\"{rules}}}\n"
        ),
    )?;
    // Guests that run already, after somebody flushed the rules or a newer Holm changed them.
    add(&netfilter, instance, &wanted(route, instance)?)
}

/// Deletes the instance's table, if there is one.
pub fn delete(instance: u8) -> Result<(), Error> {
    const DELTABLE: u16 = 0x0a02;
    let deleted = Socket::netfilter()?.commit(|batch| {
        batch
            .message("deleting the nftables table", DELTABLE, 0, &INET)
            .text(LIST_TABLE, &table(instance));
    });
    match deleted {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

/// Adds a guest's published ports to its instance's table.
pub fn publish(route: &Socket, plan: &Network) -> Result<(), Error> {
    if plan.publish.is_empty() {
        return Ok(());
    }
    let netfilter = Socket::netfilter()?;
    let elements = Published::of(plan).elements();
    match add(&netfilter, plan.instance, &elements) {
        // A guest that died without being detached had a port: `port::check` has seen that no living one has it.
        Err(Error::Kernel { errno: Errno::EXIST, .. }) => {
            sweep(route, plan.instance)?;
            add(&netfilter, plan.instance, &elements)
        }
        added => added,
    }
}

/// Takes out of an instance's table what no interface of a guest asks for any more.
pub fn sweep(route: &Socket, instance: u8) -> Result<(), Error> {
    let netfilter = Socket::netfilter()?;
    // Every guest with published ports is in here: mostly there are none.
    if elements(&netfilter, instance, "self_4")?.is_empty() {
        return Ok(());
    }
    let mut there = Vec::new();
    for set in SETS {
        there.extend(elements(&netfilter, instance, set)?);
    }
    // Asked after the elements: a guest that is being attached has its interface before its elements.
    let wanted = wanted(route, instance)?;
    for element in there.iter().filter(|element| !wanted.contains(element)) {
        let deleted = netfilter.commit(|batch| {
            element.message(batch, "withdrawing a published port", DELSETELEM, instance, false);
        });
        match deleted {
            // Somebody else sweeps too.
            Err(refused) if refused.errno != Errno::NOENT => return Err(refused.into()),
            _ => {}
        }
    }
    Ok(())
}

/// What the interfaces of an instance's guests ask for.
fn wanted(route: &Socket, instance: u8) -> Result<Vec<Element>, Error> {
    let links = link::all(route)?;
    let mine = links.iter().filter(|link| link.name.starts_with(&host_prefix(instance)));
    Ok(mine.flat_map(|link| link.published().elements()).collect())
}

/// The elements of one of the table's sets; none without the table.
fn elements(netfilter: &Socket, instance: u8, set: &'static str) -> Result<Vec<Element>, Error> {
    let mut batch = Batch::default();
    batch
        .message("reading the published ports", GETSETELEM, DUMP, &INET)
        .text(LIST_TABLE, &table(instance))
        .text(LIST_SET, set);
    let mut found = Vec::new();
    match netfilter.ask(&batch, |_, payload| {
        let list = payload.get(4..).and_then(|attributes| find(attributes, LIST_ELEMENTS));
        found.extend(
            Attributes(list.unwrap_or_default())
                .filter_map(|(_, element)| Element::parse(set, element)),
        );
    }) {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(found),
    }
}

fn add(netfilter: &Socket, instance: u8, elements: &[Element]) -> Result<(), Error> {
    if elements.is_empty() {
        return Ok(());
    }
    Ok(netfilter.commit(|batch| {
        for element in elements {
            element.message(batch, "publishing a port", NEWSETELEM, instance, true);
        }
    })?)
}

/// An element of one of the table's maps or sets, in the kernel's own form: every part padded to four bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    set: &'static str,
    key: Vec<u8>,
    data: Vec<u8>,
}

impl Element {
    fn parse(set: &'static str, element: &[u8]) -> Option<Self> {
        let value = |kind| find(find(element, kind)?, DATA_VALUE).map(<[u8]>::to_vec);
        Some(Self { set, key: value(ELEM_KEY)?, data: value(ELEM_DATA).unwrap_or_default() })
    }

    fn message(
        &self,
        batch: &mut Batch,
        what: &'static str,
        kind: u16,
        instance: u8,
        with_data: bool,
    ) {
        batch
            .message(what, kind, if with_data { CREATE } else { 0 }, &INET)
            .text(LIST_TABLE, &table(instance))
            .text(LIST_SET, self.set)
            .nest(LIST_ELEMENTS, |batch| {
                batch.nest(LIST_ELEM, |batch| {
                    batch.nest(ELEM_KEY, |batch| {
                        batch.attr(DATA_VALUE, &self.key);
                    });
                    if with_data && !self.data.is_empty() {
                        batch.nest(ELEM_DATA, |batch| {
                            batch.attr(DATA_VALUE, &self.data);
                        });
                    }
                });
            });
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn padded_port(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}

impl Published {
    /// What the table holds for these ports.
    fn elements(&self) -> Vec<Element> {
        let mut elements: Vec<Element> =
            self.ports.iter().flat_map(|port| self.of_port(port)).collect();
        if !elements.is_empty() {
            for guest in self.guests() {
                let (set, octets) =
                    (if guest.is_ipv4() { "self_4" } else { "self_6" }, octets(guest));
                elements.push(Element {
                    set,
                    key: [octets.clone(), octets].concat(),
                    data: Vec::new(),
                });
            }
        }
        elements
    }

    fn of_port(&self, port: &Publish) -> Vec<Element> {
        let number: u8 = match port.proto {
            Proto::Tcp => 6,
            Proto::Udp => 17,
        };
        let plain = [[number, 0, 0, 0], padded_port(port.host_port)].concat();
        let on = port.host_ip.filter(|ip| !ip.is_unspecified());
        self.guests()
            .filter(|guest| port.host_ip.is_none_or(|ip| ip.is_ipv4() == guest.is_ipv4()))
            .map(|guest| {
                let set = match (guest.is_ipv4(), on.is_some()) {
                    (true, false) => "tcp_udp_4",
                    (true, true) => "tcp_udp_4_at",
                    (false, false) => "tcp_udp_6",
                    (false, true) => "tcp_udp_6_at",
                };
                let key = [on.map(octets).unwrap_or_default(), plain.clone()].concat();
                let data = [octets(guest), padded_port(port.guest_port).to_vec()].concat();
                Element { set, key, data }
            })
            .collect()
    }
}

/// Serialises those who make an instance's table.
fn lock(instance: u8) -> Result<File, Error> {
    let folder = PathBuf::from(format!("/run/holm/{instance}"));
    let path = folder.join("net.lock");
    fs::create_dir_all(&folder)
        .and_then(|()| File::create(&path))
        .and_then(|file| {
            flock(&file, FlockOperation::LockExclusive).map(|()| file).map_err(io::Error::from)
        })
        .map_err(|source| Error::Lock { path, source })
}

fn run(table: &str, script: &str) -> Result<(), Error> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::NftMissing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A nft that ended early says why on its standard error.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::NftMissing)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Nft {
        table: table.to_owned(),
        said: said.lines().next().unwrap_or("nothing").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ports::decode;

    #[test]
    fn elements_have_the_kernels_form() {
        let ports = decode("8080:80/tcp 127.0.0.1:53:5353/udp");
        let published = Published { v4: Some("10.97.0.1".parse().unwrap()), v6: None, ports };
        let elements = published.elements();
        assert_eq!(
            elements[0],
            Element {
                set: "tcp_udp_4",
                key: vec![6, 0, 0, 0, 0x1f, 0x90, 0, 0],
                data: vec![10, 97, 0, 1, 0, 80, 0, 0]
            }
        );
        assert_eq!(elements[1].set, "tcp_udp_4_at");
        assert_eq!(elements[1].key, [127, 0, 0, 1, 17, 0, 0, 0, 0, 53, 0, 0]);
        assert_eq!(
            elements[2],
            Element { set: "self_4", key: vec![10, 97, 0, 1, 10, 97, 0, 1], data: vec![] }
        );
        assert_eq!(elements.len(), 3);
    }

    #[test]
    fn both_families_unless_an_address_says_which() {
        let ports = decode("80:80/tcp 0.0.0.0:81:81/tcp [::]:82:82/tcp [fd00::9]:83:83/tcp");
        let published = Published {
            v4: Some("10.97.0.1".parse().unwrap()),
            v6: Some("fd00::1".parse().unwrap()),
            ports,
        };
        let mut sets: Vec<_> = published.elements().iter().map(|element| element.set).collect();
        sets.sort_unstable();
        assert_eq!(
            sets,
            [
                "self_4",
                "self_6",
                "tcp_udp_4",
                "tcp_udp_4",
                "tcp_udp_6",
                "tcp_udp_6",
                "tcp_udp_6_at"
            ]
        );
    }

    #[test]
    fn rules_differ_by_instance_and_resolver() {
        let plain = ruleset(1, None);
        assert_ne!(mark(&plain), mark(&ruleset(2, None)));
        assert_ne!(mark(&plain), mark(&ruleset(1, Some(Ipv4Addr::LOCALHOST))));
        assert!(plain.contains("10.97.0.0/16") && !plain.contains("dnat ip to 127"));
    }
}
