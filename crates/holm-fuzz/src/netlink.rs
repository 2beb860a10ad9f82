//! The kernel's netlink messages.

use holm::net::{Attributes, Link, Messages, number, text};

/// A datagram. Parsing it terminates, and yields no more bytes than it has.
pub fn netlink(data: &[u8]) -> bool {
    let mut links = 0;
    for message in Messages(data) {
        let _ = message.error();
        links += usize::from(Link::parse(message.kind, message.payload).is_some());
        for header in [4, 12, 16] {
            attributes(message.payload.get(header..).unwrap_or_default(), 4);
        }
    }
    links > 0
}

/// Attributes, and those nested in them.
fn attributes(bytes: &[u8], depth: u32) {
    let mut size = 0;
    for (kind, value) in Attributes(bytes) {
        assert!(kind < 0x4000);
        let _ = (number(value), text(value));
        size += 4 + value.len();
        if depth > 0 {
            attributes(value, depth - 1);
        }
    }
    assert!(size <= bytes.len());
}
