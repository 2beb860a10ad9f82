//! What a monitor's responder offers a guest that asks for its network.

/// The network settings of one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease {
    /// Ethernet address of the host's end.
    pub host_mac: [u8; 6],
    /// The guest's IPv4 address, given as a /32.
    pub guest_v4: [u8; 4],
    /// The router, reached directly.
    pub gateway_v4: [u8; 4],
    /// The guest's IPv6 address, given as a /128.
    pub guest_v6: [u8; 16],
    /// The IPv6 router, a link-local address; all zeroes: nothing is offered by IPv6.
    pub gateway_v6: [u8; 16],
    /// Bytes.
    pub mtu: u16,
    /// Name servers; all zeroes: none.
    pub dns_v4: [[u8; 4]; 3],
    /// IPv6 name servers; all zeroes: none.
    pub dns_v6: [[u8; 16]; 3],
}

/// Bytes of a [`Lease`].
const LENGTH: usize = 6 + 4 + 4 + 16 + 16 + 2 + 12 + 48;

/// Characters of a [`Lease`] as text.
pub const TEXT_LENGTH: usize = 2 * LENGTH;

impl Lease {
    /// As hexadecimal digits, for an environment variable.
    pub fn to_text(self) -> [u8; TEXT_LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut rest = &mut bytes[..];
        let mut put = |part: &[u8]| {
            if let Some((room, behind)) =
                core::mem::take(&mut rest).split_at_mut_checked(part.len())
            {
                room.copy_from_slice(part);
                rest = behind;
            }
        };
        for part in [&self.host_mac[..], &self.guest_v4, &self.gateway_v4] {
            put(part);
        }
        put(&self.guest_v6);
        put(&self.gateway_v6);
        put(&self.mtu.to_be_bytes());
        self.dns_v4.iter().for_each(|server| put(server));
        self.dns_v6.iter().for_each(|server| put(server));
        let mut text = [0; TEXT_LENGTH];
        for (byte, digits) in bytes.iter().zip(text.as_chunks_mut::<2>().0) {
            *digits = [
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ];
        }
        text
    }

    /// Reads what [`Lease::to_text`] wrote.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        if text.len() != TEXT_LENGTH {
            return None;
        }
        let mut bytes = [0; LENGTH];
        for (byte, [high, low]) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        let mut at = Reader(&bytes);
        Some(Self {
            host_mac: at.take()?,
            guest_v4: at.take()?,
            gateway_v4: at.take()?,
            guest_v6: at.take()?,
            gateway_v6: at.take()?,
            mtu: u16::from_be_bytes(at.take()?),
            dns_v4: [at.take()?, at.take()?, at.take()?],
            dns_v6: [at.take()?, at.take()?, at.take()?],
        })
    }
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lease, TEXT_LENGTH};

    #[test]
    fn a_lease_is_read_as_it_is_written() {
        let lease = Lease {
            host_mac: [2, 0x68, 0x68, 1, 0, 9],
            guest_v4: [10, 97, 0, 9],
            gateway_v4: [169, 254, 1, 1],
            guest_v6: [0xfd, 0, 0x68, 0x6f, 0x6c, 0x6d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9],
            gateway_v6: [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            mtu: 1400,
            dns_v4: [[192, 0, 2, 53], [192, 0, 2, 54], [0; 4]],
            dns_v6: [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53], [0; 16], [0; 16]],
        };
        assert_eq!(Lease::from_text(&lease.to_text()), Some(lease));
        assert_eq!(Lease::from_text(b"00"), None);
        assert_eq!(Lease::from_text(&[b'x'; TEXT_LENGTH]), None);
    }
}
