//! What a monitor records of the connections that its guest opens.
//!
//! ```text
//! flows/connections/NAME/log     records one after another, the newest at the end
//! flows/connections/NAME/log.1   those before it
//!
//! a record, in network order:
//!   0  seconds since 1970         8  number of the protocol (IPPROTO_*)   9  kind
//!  10  source port               12  destination port                    14  0
//!  16  source address            32  destination address
//! ```
//!
//! An IPv4 address is written as IPv6 maps it.

use core::net::Ipv6Addr;

/// Bytes of a record.
pub const RECORD: usize = 48;

/// Where `log` becomes `log.1`, in bytes: some 87000 records.
pub const LIMIT: u64 = 4 << 20;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The guest has opened a connection.
    Opened {
        /// Seconds since 1970, up to a second late.
        at: u64,
        /// The number of its protocol, as /etc/protocols has them.
        protocol: u8,
        /// The address and port that others see: those of the host.
        from: (Ipv6Addr, u16),
        /// With whom it is.
        to: (Ipv6Addr, u16),
    },
    /// The guest has opened more than could be recorded.
    Lost {
        /// Seconds since 1970.
        at: u64,
    },
}

const OPENED: u8 = 1;
const LOST: u8 = 2;

impl Flow {
    /// As it is written.
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        match self {
            Self::Opened { at, protocol, from, to } => {
                bytes[..8].copy_from_slice(&at.to_be_bytes());
                bytes[8..10].copy_from_slice(&[protocol, OPENED]);
                bytes[10..12].copy_from_slice(&from.1.to_be_bytes());
                bytes[12..14].copy_from_slice(&to.1.to_be_bytes());
                bytes[16..32].copy_from_slice(&from.0.octets());
                bytes[32..].copy_from_slice(&to.0.octets());
            }
            Self::Lost { at } => {
                bytes[..8].copy_from_slice(&at.to_be_bytes());
                bytes[9] = LOST;
            }
        }
        bytes
    }

    /// Reads what [`Flow::to_bytes`] wrote; `None` for anything else, such as what a power failure
    /// leaves.
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let at = u64::from_be_bytes(*bytes.first_chunk()?);
        let port = |offset: usize| Some(u16::from_be_bytes(*bytes.get(offset..)?.first_chunk()?));
        let address =
            |offset: usize| Some(Ipv6Addr::from(*bytes.get(offset..)?.first_chunk::<16>()?));
        match bytes[9] {
            OPENED => Some(Self::Opened {
                at,
                protocol: bytes[8],
                from: (address(16)?, port(10)?),
                to: (address(32)?, port(12)?),
            }),
            LOST => Some(Self::Lost { at }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let opened = Flow::Opened {
            at: 1_790_000_000,
            protocol: 17,
            from: (address(1), 40000),
            to: (address(2), 53),
        };
        for flow in [opened, Flow::Lost { at: 7 }] {
            assert_eq!(Flow::from_bytes(&flow.to_bytes()), Some(flow));
        }
        assert_eq!(Flow::from_bytes(&[0; RECORD]), None);
    }
}
