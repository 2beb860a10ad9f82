//! DHCP (RFC 2131, 3442).

use super::packet::{Reader, Writer, checksum, length};
use holm_proto::Lease;

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;
const INFORM: u8 = 8;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

// Options (RFC 2132, 3442).
const SUBNET_MASK: u8 = 1;
const ROUTER: u8 = 3;
const DNS_SERVERS: u8 = 6;
const MTU: u8 = 26;
const REQUESTED_ADDRESS: u8 = 50;
const LEASE_TIME: u8 = 51;
const MESSAGE_TYPE: u8 = 53;
const SERVER_ID: u8 = 54;
const CLIENT_ID: u8 = 61;
const CLASSLESS_ROUTES: u8 = 121;
const END: u8 = 255;

/// Writes the reply to a packet that begins with its IPv4 header.
pub fn reply(packet: &[u8], client_mac: [u8; 6], lease: &Lease, out: &mut Writer) -> Option<usize> {
    let header = usize::from(packet.first()? & 15) * 4;
    let mut udp = Reader(packet.get(header..)?);
    let ports: [u8; 4] = udp.take()?;
    if ports != [0, 68, 0, 67] {
        return None;
    }
    let _length_and_checksum: [u8; 4] = udp.take()?;
    let message = udp.0;
    let mut at = Reader(message);
    // A request (1) from an Ethernet (1) with addresses of 6 bytes.
    let [1, 1, 6, _] = at.take()? else { return None };
    let transaction: [u8; 4] = at.take()?;
    let _seconds: [u8; 2] = at.take()?;
    let flags: [u8; 2] = at.take()?;
    let ciaddr: [u8; 4] = at.take()?;
    let hardware_address: [u8; 16] = message.get(28..44)?.try_into().ok()?;
    if message.get(236..240)? != COOKIE {
        return None;
    }
    let options = message.get(240..)?;
    if option(options, SERVER_ID).is_some_and(|server| server != lease.gateway_v4) {
        return None;
    }
    let wanted = option(options, REQUESTED_ADDRESS).unwrap_or(&ciaddr);
    let kind = match *option(options, MESSAGE_TYPE)? {
        [DISCOVER] => OFFER,
        [REQUEST] if wanted == lease.guest_v4 || wanted == [0; 4] => ACK,
        [REQUEST] => NAK,
        [INFORM] => ACK,
        _ => return None,
    };
    let inform = option(options, MESSAGE_TYPE) == Some(&[INFORM]);
    let yiaddr = if kind == NAK || inform { [0; 4] } else { lease.guest_v4 };
    let ciaddr = if kind == NAK { [0; 4] } else { ciaddr };

    let known = ciaddr != [0; 4];
    out.put(if known { &client_mac } else { &[0xff; 6] });
    out.put(&lease.host_mac);
    out.put(&[0x08, 0x00]);
    let ip = out.length;
    // Version 4, 20 bytes; lengths and checksum follow below; not to be fragmented, 64 hops, UDP.
    out.put(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    out.put(&lease.gateway_v4);
    out.put(if known { &ciaddr } else { &[0xff; 4] });
    let udp = out.length;
    // UDP over IPv4 may go without a checksum (0).
    out.put(&[0, 67, 0, 68, 0, 0, 0, 0]);
    out.put(&[2, 1, 6, 0]);
    out.put(&transaction);
    out.put(&[0, 0]);
    out.put(&flags);
    out.put(&ciaddr);
    out.put(&yiaddr);
    // No next server, no relay; then the client's hardware address, 192 bytes of host and file
    // name.
    out.put(&[0; 8]);
    out.put(&hardware_address);
    out.put(&[0; 192]);
    out.put(&COOKIE);
    put_option(out, MESSAGE_TYPE, &[kind]);
    put_option(out, SERVER_ID, &lease.gateway_v4);
    if let Some(identifier) = option(options, CLIENT_ID) {
        put_option(out, CLIENT_ID, identifier);
    }
    if kind != NAK {
        put_network_options(lease, inform, out);
    }
    out.put(&[END]);
    // The smallest message that every client takes.
    while out.length < udp + 8 + 300 {
        out.put(&[0]);
    }
    out.set(udp + 4, length(out.length.checked_sub(udp)?)?);
    out.set(ip + 2, length(out.length.checked_sub(ip)?)?);
    let sum = checksum(0, out.bytes.get(ip..udp)?);
    out.set(ip + 10, sum);
    out.finish()
}

/// The options with the network settings: a /32 address, and a router outside of that.
fn put_network_options(lease: &Lease, inform: bool, out: &mut Writer) {
    if !inform {
        put_option(out, LEASE_TIME, &[0xff; 4]); // infinite
    }
    put_option(out, SUBNET_MASK, &[0xff; 4]);
    put_option(out, ROUTER, &lease.gateway_v4);
    // Classless routes: the gateway directly, everything else by the gateway.
    let [a, b, c, d] = lease.gateway_v4;
    put_option(out, CLASSLESS_ROUTES, &[32, a, b, c, d, 0, 0, 0, 0, 0, a, b, c, d]);
    put_option(out, MTU, &lease.mtu.to_be_bytes());
    let servers = lease.dns_v4.iter().filter(|server| **server != [0; 4]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[DNS_SERVERS, count * 4]);
        servers.for_each(|server| out.put(server));
    }
}

/// The value of a DHCP option.
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        options = match *options {
            [] | [255, ..] => return None,
            [0, ref rest @ ..] => rest,
            [code, length, ref rest @ ..] => {
                let value = rest.get(..usize::from(length))?;
                if code == wanted {
                    return Some(value);
                }
                rest.get(usize::from(length)..)?
            }
            [_] => return None,
        };
    }
}

fn put_option(out: &mut Writer, code: u8, value: &[u8]) {
    if let Ok(length) = u8::try_from(value.len()) {
        out.put(&[code, length]);
        out.put(value);
    }
}
