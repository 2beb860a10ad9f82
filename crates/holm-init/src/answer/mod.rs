//! Answers a guest that asks for its network by DHCP (RFC 2131, 3442), router solicitation (RFC 4861, 8106) or `DHCPv6`.
//!
//! Pure and without a heap: the monitor reads a frame from its packet socket, [`answer`] writes the reply, the monitor
//! writes that to the same socket. Everything in a frame comes from the guest: whatever does not fit gets no answer, and
//! nothing here panics or loops on it.

mod dhcp6;
#[cfg(test)]
mod tests;

use holm_proto::Lease;

/// Room that the longest answer needs, bytes.
pub const ANSWER_MAX: usize = 1024;
/// Writes the answer to an Ethernet frame and returns its length; `None` when there is nothing to say.
pub fn answer(frame: &[u8], config: &Lease, out: &mut [u8]) -> Option<usize> {
    let mut at = Reader(frame);
    let _to: [u8; 6] = at.take()?;
    let asker: [u8; 6] = at.take()?;
    let mut out = Writer { bytes: out, length: 0 };
    match at.take()? {
        [0x08, 0x00] => dhcp(at.0, asker, config, &mut out),
        [0x86, 0xdd] => ipv6(at.0, asker, config, &mut out),
        _ => None,
    }
}

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;
const INFORM: u8 = 8;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// `packet` begins with the IPv4 header.
fn dhcp(packet: &[u8], asker: [u8; 6], config: &Lease, out: &mut Writer) -> Option<usize> {
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
    let client: [u8; 4] = at.take()?;
    let hardware: [u8; 16] = message.get(28..44)?.try_into().ok()?;
    if message.get(236..240)? != COOKIE {
        return None;
    }
    let options = message.get(240..)?;
    if option(options, 54).is_some_and(|server| server != config.gateway_v4) {
        return None;
    }
    let wanted = option(options, 50).unwrap_or(&client);
    let kind = match *option(options, 53)? {
        [DISCOVER] => OFFER,
        [REQUEST] if wanted == config.guest_v4 || wanted == [0; 4] => ACK,
        [REQUEST] => NAK,
        [INFORM] => ACK,
        _ => return None,
    };
    let inform = option(options, 53) == Some(&[INFORM]);
    let address = if kind == NAK || inform { [0; 4] } else { config.guest_v4 };
    let client = if kind == NAK { [0; 4] } else { client };

    let known = client != [0; 4];
    out.put(if known { &asker } else { &[0xff; 6] });
    out.put(&config.host_mac);
    out.put(&[0x08, 0x00]);
    let ip = out.length;
    // Version 4, 20 bytes; lengths and checksum follow below; not to be fragmented, 64 hops, UDP.
    out.put(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    out.put(&config.gateway_v4);
    out.put(if known { &client } else { &[0xff; 4] });
    let udp = out.length;
    // UDP over IPv4 may go without a checksum (0).
    out.put(&[0, 67, 0, 68, 0, 0, 0, 0]);
    out.put(&[2, 1, 6, 0]);
    out.put(&transaction);
    out.put(&[0, 0]);
    out.put(&flags);
    out.put(&client);
    out.put(&address);
    // No next server, no relay; then the client's hardware address, 192 bytes of host and file name.
    out.put(&[0; 8]);
    out.put(&hardware);
    out.put(&[0; 192]);
    out.put(&COOKIE);
    out.option(53, &[kind]);
    out.option(54, &config.gateway_v4);
    if let Some(identifier) = option(options, 61) {
        out.option(61, identifier);
    }
    if kind != NAK {
        terms(config, inform, out);
    }
    out.put(&[255]);
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

/// The options that tell the network: an address alone on its net, a router beside it.
fn terms(config: &Lease, inform: bool, out: &mut Writer) {
    if !inform {
        out.option(51, &[0xff; 4]); // for ever
    }
    out.option(1, &[0xff; 4]);
    out.option(3, &config.gateway_v4);
    // Classless routes: the gateway directly, everything else by the gateway.
    let [a, b, c, d] = config.gateway_v4;
    out.option(121, &[32, a, b, c, d, 0, 0, 0, 0, 0, a, b, c, d]);
    out.option(26, &config.mtu.to_be_bytes());
    let servers = config.dns_v4.iter().filter(|server| **server != [0; 4]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[6, count * 4]);
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

const ICMP: u8 = 58;
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Who asked by IPv6.
struct Asker {
    mac: [u8; 6],
    /// All zeroes: it has no address yet.
    address: [u8; 16],
}

/// `packet` begins with the IPv6 header.
fn ipv6(packet: &[u8], mac: [u8; 6], config: &Lease, out: &mut Writer) -> Option<usize> {
    if config.gateway_v6 == [0; 16] {
        return None;
    }
    let mut at = Reader(packet);
    let _version_and_length: [u8; 6] = at.take()?;
    let next: [u8; 2] = at.take()?;
    let asker = Asker { mac, address: at.take()? };
    let _destination: [u8; 16] = at.take()?;
    match next {
        // ICMPv6, from this link; UDP.
        [ICMP, 255] => router(at.0, &asker, config, out),
        [17, _] => dhcp6::reply(at.0, &asker, config, out),
        _ => None,
    }
}

/// Writes the headers of an answer by IPv6 and returns where its IPv6 header begins.
fn open(to: &Asker, next: u8, config: &Lease, out: &mut Writer) -> usize {
    let named = to.address != [0; 16];
    out.put(if named { &to.mac } else { &[0x33, 0x33, 0, 0, 0, 1] });
    out.put(&config.host_mac);
    out.put(&[0x86, 0xdd]);
    let ip = out.length;
    out.put(&[0x60, 0, 0, 0, 0, 0, next, 255]);
    out.put(&config.gateway_v6);
    out.put(if named { &to.address } else { &ALL_NODES });
    ip
}

/// Fills in the length and the checksum, which stands so many bytes behind the IPv6 header that begins at `ip`.
fn close(ip: usize, next: u8, checksum_at: usize, out: &mut Writer) -> Option<usize> {
    let body = ip + 40;
    let size = length(out.length.checked_sub(body)?)?;
    out.set(ip + 4, size);
    // The pseudo header: both addresses, length, protocol.
    let addresses = sum(out.bytes.get(ip + 8..body)?);
    let pseudo = u32::from(u16::from_be_bytes(size)) + u32::from(next) + addresses;
    let sum = match checksum(pseudo, out.bytes.get(body..out.length)?) {
        [0, 0] => [0xff; 2], // the same number, and UDP takes zero for none
        sum => sum,
    };
    out.set(body + checksum_at, sum);
    out.finish()
}

/// The advertisement has no prefix, because an address made of one would not be routed: the guest has its one address
/// already, or asks for it by `DHCPv6`.
fn router(body: &[u8], asker: &Asker, config: &Lease, out: &mut Writer) -> Option<usize> {
    let [SOLICITATION, 0] = Reader(body).take()? else { return None };
    let ip = open(asker, ICMP, config, out);
    // 64 hops, addresses are to be had by DHCPv6, a router for the longest time that the field holds.
    out.put(&[ADVERTISEMENT, 0, 0, 0, 64, 0x80, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.put(&[1, 1]);
    out.put(&config.host_mac);
    out.put(&[5, 1, 0, 0, 0, 0]);
    out.put(&config.mtu.to_be_bytes());
    // The default route once more, for ever.
    out.put(&[24, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let servers = config.dns_v6.iter().filter(|server| **server != [0; 16]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[25, 1 + 2 * count, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        servers.for_each(|server| out.put(server));
    }
    close(ip, ICMP, 2, out)
}

fn length(bytes: usize) -> Option<[u8; 2]> {
    u16::try_from(bytes).ok().map(u16::to_be_bytes)
}

fn sum(bytes: &[u8]) -> u32 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum::<u32>()
        + odd.first().map_or(0, |byte| u32::from(*byte) << 8)
}

/// The internet checksum (RFC 1071) of some bytes, on top of a sum.
fn checksum(start: u32, bytes: &[u8]) -> [u8; 2] {
    let mut total = start + sum(bytes);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    let [_, _, high, low] = (!total).to_be_bytes();
    [high, low]
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

/// Writes into a slice; what does not fit is only counted, and [`Writer::finish`] then gives nothing.
struct Writer<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Writer<'_> {
    fn put(&mut self, part: &[u8]) {
        self.set(self.length, part);
        self.length += part.len();
    }

    fn set(&mut self, at: usize, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        if let Some(room) = self.bytes.get_mut(at..at + part.len()) {
            room.copy_from_slice(part);
        }
    }

    fn option(&mut self, code: u8, value: &[u8]) {
        if let Ok(length) = u8::try_from(value.len()) {
            self.put(&[code, length]);
            self.put(value);
        }
    }

    fn finish(&self) -> Option<usize> {
        (self.length <= self.bytes.len()).then_some(self.length)
    }
}
