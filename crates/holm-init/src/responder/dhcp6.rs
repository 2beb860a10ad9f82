//! `DHCPv6` (RFC 8415): the guest's one address, which no prefix of an advertisement could tell,
//! and the name servers.

use super::ipv6::{Asker, begin_packet, finish_packet};
use super::packet::{Reader, Writer, length};
use holm_proto::Lease;

const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const RENEW: u8 = 5;
const REBIND: u8 = 6;
const REPLY: u8 = 7;
const INFORMATION: u8 = 11;

const CLIENT: u16 = 1;
const SERVER: u16 = 2;
const ADDRESSES: u16 = 3;
const DNS: u16 = 23;

/// No end: as a lifetime, and as the time after which a client asks again.
const INFINITY: [u8; 4] = [0xff; 4];
/// The protocol UDP.
pub const UDP: u8 = 17;
/// A server's DUID begins so: it is made of a link-layer address (3) on an Ethernet (1).
const ETHERNET: [u8; 4] = [0, 3, 0, 1];

/// `udp` begins with the UDP header.
pub fn reply(udp: &[u8], asker: &Asker, lease: &Lease, out: &mut Writer) -> Option<usize> {
    let mut at = Reader(udp);
    // From port 546 to port 547, from an address that can be replied to.
    let [2, 0x22, 2, 0x23] = at.take()? else { return None };
    if asker.address == [0; 16] {
        return None;
    }
    let _length_and_checksum: [u8; 4] = at.take()?;
    let [kind, transaction @ ..]: [u8; 4] = at.take()?;
    let kind = match kind {
        SOLICIT => ADVERTISE,
        REQUEST | RENEW | REBIND | INFORMATION => REPLY,
        _ => return None,
    };
    let options = at.0;
    if option(options, SERVER)
        .is_some_and(|named| named.strip_prefix(&ETHERNET) != Some(&lease.host_mac))
    {
        return None;
    }
    let start = begin_packet(asker, UDP, lease, out);
    let body = out.length;
    out.put(&[2, 0x23, 2, 0x22, 0, 0, 0, 0, kind]);
    out.put(&transaction);
    if let Some(client) = option(options, CLIENT) {
        put(CLIENT, client, out);
    }
    out.put(&[0, 2, 0, 10]);
    out.put(&ETHERNET);
    out.put(&lease.host_mac);
    // A client that only asks for information has no IA_NA option.
    if let Some(group) = option(options, ADDRESSES).and_then(|group| group.get(..4)) {
        out.put(&[0, 3, 0, 40]);
        out.put(group);
        out.put(&INFINITY);
        out.put(&INFINITY);
        out.put(&[0, 5, 0, 24]);
        out.put(&lease.guest_v6);
        out.put(&INFINITY);
        out.put(&INFINITY);
    }
    let [high, low] = DNS.to_be_bytes();
    let servers = lease.dns_v6.iter().filter(|server| **server != [0; 16]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[high, low, 0, count * 16]);
        servers.for_each(|server| out.put(server));
    }
    let size = length(out.length.checked_sub(body)?)?;
    out.set(body + 4, size);
    finish_packet(start, UDP, 6, out)
}

fn put(code: u16, value: &[u8], out: &mut Writer) {
    if let Some(length) = length(value.len()) {
        out.put(&code.to_be_bytes());
        out.put(&length);
        out.put(value);
    }
}

/// The value of an option.
fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let mut at = Reader(options);
        let code = u16::from_be_bytes(at.take()?);
        let size = usize::from(u16::from_be_bytes(at.take()?));
        let value = at.0.get(..size)?;
        if code == wanted {
            return Some(value);
        }
        options = at.0.get(size..)?;
    }
}
