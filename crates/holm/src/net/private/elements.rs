//! The elements of the maps and sets in an instance's nftables table: published ports, classes of
//! guests, and what is counted of them.

use std::net::IpAddr;

use rustix::io::Errno;

use super::ruleset::{COUNTS, table};
use super::{recorded, requests};
use crate::config::{Proto, Publish};
use crate::net::addresses::host_prefix;
use crate::net::error::Error;
use crate::net::flows;
use crate::net::link;
use crate::net::netlink::{Attributes, Batch, DUMP, Socket, find};
use crate::net::nflog::Kind;
use crate::net::nft::{
    self, DATA_VALUE, DELSETELEM, DESTROYSETELEM, ELEM_DATA, ELEM_KEY, GETSETELEM, INET,
    LIST_ELEMENTS, LIST_SET, LIST_TABLE, NEWSETELEM, Place,
};
use crate::net::published::Published;
use crate::net::request::Request;
use crate::net::shaping::{self, class_id};
use crate::record::{Network, host_index};

const ELEM_EXPR: u16 = 7;
const EXPR_DATA: u16 = 2;
const COUNTER_PACKETS: u16 = 2;

/// All sets and maps of the table.
const SETS: [&str; 6] =
    ["tcp_udp_4", "tcp_udp_4_at", "tcp_udp_6", "tcp_udp_6_at", "hairpin_4", "hairpin_6"];

/// Marks the packets of a guest with its class, or no longer.
pub fn tag(instance: u8, context: u32, tagged: bool) -> Result<(), Error> {
    let netfilter = Socket::netfilter()?;
    let element = class_element(instance, context);
    if !tagged {
        return delete(&netfilter, Request::UntagPackets, instance, &element);
    }
    Ok(netfilter.commit(|batch| {
        element.message(batch, Request::TagPackets, NEWSETELEM, instance);
    })?)
}

/// The element for the packets of a guest that has a class.
pub fn class_element(instance: u8, context: u32) -> Element {
    Element {
        set: "classes",
        key: host_index(instance, context).to_ne_bytes().to_vec(),
        data: class_id(instance, context).to_ne_bytes().to_vec(),
    }
}

/// Adds a guest's published ports to its instance's table.
pub fn publish(route: &Socket, network: &Network) -> Result<(), Error> {
    if network.publish.is_empty() {
        return Ok(());
    }
    let netfilter = Socket::netfilter()?;
    let elements = Published::of(network).elements();
    match add(&netfilter, network.instance, &elements) {
        // Left by a guest that ended without being detached: `ports::check` has made sure that no
        // running guest publishes the port.
        Err(Error::Kernel { errno: Errno::EXIST, .. }) => {
            remove_stale(route, network.instance)?;
            add(&netfilter, network.instance, &elements)
        }
        added => added,
    }
}

/// Removes a guest's published ports, without a look at those of others: an end takes no longer
/// among a thousand guests.
pub fn unpublish(network: &Network) -> Result<(), Error> {
    let netfilter = Socket::netfilter()?;
    let mut own = Vec::new();
    for element in Published::of(network).elements() {
        // By now the port may be another guest's: its element has the same key and other data.
        if get(&netfilter, network.instance, element.set, &element.key)?.as_ref() == Some(&element)
        {
            own.push(element);
        }
    }
    delete_all(&netfilter, Request::UnpublishPort, network.instance, &own)
}

/// Removes elements, at once if no other command does so at the same time: each transaction takes
/// as long as hundreds of elements.
fn delete_all(
    netfilter: &Socket,
    request: Request,
    instance: u8,
    elements: &[Element],
) -> Result<(), Error> {
    if elements.is_empty() {
        return Ok(());
    }
    let deleted = netfilter.commit(|batch| {
        for element in elements {
            element.message(batch, request, DELSETELEM, instance);
        }
    });
    match deleted {
        Err(refused) if refused.errno == Errno::NOENT => {
            elements.iter().try_for_each(|element| delete(netfilter, request, instance, element))
        }
        deleted => Ok(deleted?),
    }
}

/// The element of one of a table's sets that has this key.
pub fn get(
    netfilter: &Socket,
    instance: u8,
    set: &'static str,
    key: &[u8],
) -> Result<Option<Element>, Error> {
    let batch = ask_for(Request::ListPorts, instance, set, key);
    Ok(query(netfilter, &batch, |element| Element::parse(set, element))?.pop())
}

fn ask_for(request: Request, instance: u8, set: &'static str, key: &[u8]) -> Batch {
    let wanted = Element { set, key: key.to_vec(), data: Vec::new() };
    let mut batch = Batch::default();
    wanted.message(&mut batch, request, GETSETELEM, instance);
    batch
}

/// How many packets the element of a set with this key has counted; 0 without one.
pub fn count(
    netfilter: &Socket,
    instance: u8,
    set: &'static str,
    key: &[u8],
) -> Result<u64, Error> {
    let batch = ask_for(Request::ReadCounts, instance, set, key);
    Ok(query(netfilter, &batch, packets)?.pop().unwrap_or(0))
}

/// The packets that an element's counter has counted.
fn packets(element: &[u8]) -> Option<u64> {
    let counter = find(find(element, ELEM_EXPR)?, EXPR_DATA)?;
    find(counter, COUNTER_PACKETS)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Has a guest's packets counted from 0 on: another guest with its context id may have been counted
/// before. And its connections and requests told: in the same transaction, as a second one waits
/// for the first.
pub fn begin_counts(network: &Network) -> Result<(), Error> {
    let (instance, context) = (network.instance, network.context);
    let key = network.host_index().to_ne_bytes();
    let flows = flows::group_of(network)?;
    let netfilter = Socket::netfilter()?;
    if flows.is_some() {
        recorded::ensure(&netfilter, instance)?;
    }
    let are_told = requests::are_told(&netfilter, instance, context)?;
    let requests = (!are_told).then(|| Kind::Requests.group(instance, context)).transpose()?;
    let begin = |requests: Option<u16>| {
        netfilter.commit(|batch| {
            for set in COUNTS {
                let element = Element { set, key: key.to_vec(), data: Vec::new() };
                element.message(batch, Request::ResetCounts, DESTROYSETELEM, instance);
            }
            recorded::begin(batch, instance, context, flows);
            if let Some(group) = requests {
                requests::begin(batch, instance, context, group);
            }
        })
    };
    match begin(requests) {
        // A kernel without `nft_log`: the monitor has a packet socket then.
        Err(refused) if refused.request == Request::TellRequests => Ok(begin(None)?),
        counted => Ok(counted?),
    }
}

/// Removes the elements that belong to no guest's interface any more.
pub fn remove_stale(route: &Socket, instance: u8) -> Result<(), Error> {
    let netfilter = Socket::netfilter()?;
    // Every guest with published ports is in this set, and usually there are none.
    if elements(&netfilter, instance, "hairpin_4")?.is_empty() {
        return Ok(());
    }
    let mut present = Vec::new();
    for set in SETS {
        present.extend(elements(&netfilter, instance, set)?);
    }
    // Read after the elements, because `attach` makes the interface before the elements.
    let wanted = wanted(route, instance)?;
    let stale = present.into_iter().filter(|element| !wanted.contains(element)).collect::<Vec<_>>();
    delete_all(&netfilter, Request::UnpublishPort, instance, &stale)
}

/// The elements for all interfaces of an instance's guests.
pub fn wanted(route: &Socket, instance: u8) -> Result<Vec<Element>, Error> {
    let links = link::all(route)?;
    let own = links.iter().filter(|link| link.name.starts_with(&host_prefix(instance)));
    let ports = own.flat_map(|link| link.published().elements());
    let classes = shaping::contexts(route, instance)?.into_iter();
    Ok(ports.chain(classes.map(|context| class_element(instance, context))).collect())
}

/// The elements of one of the table's sets; none if the table does not exist.
pub fn elements(
    netfilter: &Socket,
    instance: u8,
    set: &'static str,
) -> Result<Vec<Element>, Error> {
    let mut batch = Batch::default();
    batch
        .message(Request::ListPorts, GETSETELEM, DUMP, &INET)
        .text(LIST_TABLE, &table(instance))
        .text(LIST_SET, set);
    query(netfilter, &batch, |element| Element::parse(set, element))
}

/// What `parse` makes of the elements in the reply to a query; nothing if there is no such element,
/// set or table.
fn query<T>(
    netfilter: &Socket,
    batch: &Batch,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    nft::found(netfilter, batch, |attributes| {
        let list = find(attributes, LIST_ELEMENTS).unwrap_or_default();
        all.extend(Attributes(list).filter_map(|(_, element)| parse(element)));
    })?;
    Ok(all)
}

/// Adds elements in one transaction.
pub fn add(netfilter: &Socket, instance: u8, elements: &[Element]) -> Result<(), Error> {
    if elements.is_empty() {
        return Ok(());
    }
    Ok(netfilter.commit(|batch| {
        for element in elements {
            element.message(batch, Request::PublishPort, NEWSETELEM, instance);
        }
    })?)
}

/// Removes an element, unless another command has done so at the same time.
fn delete(
    netfilter: &Socket,
    request: Request,
    instance: u8,
    element: &Element,
) -> Result<(), Error> {
    let deleted = netfilter.commit(|batch| {
        element.message(batch, request, DELSETELEM, instance);
    });
    match deleted {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

/// An element of one of the table's maps or sets, in the kernel's form: every part is padded to
/// four bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    set: &'static str,
    pub key: Vec<u8>,
    data: Vec<u8>,
}

impl Element {
    fn parse(set: &'static str, element: &[u8]) -> Option<Self> {
        let value = |kind| find(find(element, kind)?, DATA_VALUE).map(<[u8]>::to_vec);
        Some(Self { set, key: value(ELEM_KEY)?, data: value(ELEM_DATA).unwrap_or_default() })
    }

    fn message(&self, batch: &mut Batch, request: Request, kind: u16, instance: u8) {
        let table = table(instance);
        let place = Place { table: &table, set: self.set, key: &self.key };
        place.message(batch, request, kind, |batch| {
            if kind == NEWSETELEM && !self.data.is_empty() {
                batch.nest(ELEM_DATA, |batch| {
                    batch.attr(DATA_VALUE, &self.data);
                });
            }
        });
    }
}

pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn padded_port(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}

/// The key of a published port in `tcp_udp_4` and `tcp_udp_6`, and the end of its keys in the other
/// two maps.
pub fn port_key(port: &Publish) -> Vec<u8> {
    let number: u8 = match port.proto {
        Proto::Tcp => 6,
        Proto::Udp => 17,
    };
    [[number, 0, 0, 0], padded_port(port.host_port)].concat()
}

impl Published {
    /// The table's elements for these ports.
    fn elements(&self) -> Vec<Element> {
        let mut elements: Vec<Element> =
            self.ports.iter().flat_map(|port| self.port_elements(port)).collect();
        if !elements.is_empty() {
            for guest in self.guests() {
                let (set, octets) =
                    (if guest.is_ipv4() { "hairpin_4" } else { "hairpin_6" }, octets(guest));
                elements.push(Element {
                    set,
                    key: [octets.clone(), octets].concat(),
                    data: Vec::new(),
                });
            }
        }
        elements
    }

    fn port_elements(&self, port: &Publish) -> Vec<Element> {
        let plain = port_key(port);
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
            Element { set: "hairpin_4", key: vec![10, 97, 0, 1, 10, 97, 0, 1], data: vec![] }
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
                "hairpin_4",
                "hairpin_6",
                "tcp_udp_4",
                "tcp_udp_4",
                "tcp_udp_6",
                "tcp_udp_6",
                "tcp_udp_6_at"
            ]
        );
    }
}
