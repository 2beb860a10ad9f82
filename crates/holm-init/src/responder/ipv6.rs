//! The headers of replies by IPv6.

use super::packet::{Writer, checksum, length, sum};
use holm_proto::Lease;

const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The sender of a question by IPv6.
pub struct Asker {
    pub mac: [u8; 6],
    /// All zeroes: it has no address yet.
    pub address: [u8; 16],
}

/// Writes the headers of a reply by IPv6 and returns where its IPv6 header begins.
pub fn begin_packet(to: &Asker, next: u8, lease: &Lease, out: &mut Writer) -> usize {
    let named = to.address != [0; 16];
    out.put(if named { &to.mac } else { &[0x33, 0x33, 0, 0, 0, 1] });
    out.put(&lease.host_mac);
    out.put(&[0x86, 0xdd]);
    let ip = out.length;
    out.put(&[0x60, 0, 0, 0, 0, 0, next, 255]);
    out.put(&lease.gateway_v6);
    out.put(if named { &to.address } else { &ALL_NODES });
    ip
}

/// Fills in the length and the checksum, which is this many bytes behind the IPv6 header that
/// begins at `ip`.
pub fn finish_packet(ip: usize, next: u8, checksum_at: usize, out: &mut Writer) -> Option<usize> {
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
