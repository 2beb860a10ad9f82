//! Reads the packets that the kernel tells by the log of nftables (`nfnetlink_log`).
//!
//! Without a heap. The packets come from the guest: whatever does not fit is left out, and nothing
//! here panics or loops on it.

/// `NFNL_SUBSYS_ULOG`, `NFULNL_MSG_PACKET`.
const PACKET: u16 = 4 << 8;
/// Bytes of a `nlmsghdr` with a `nfgenmsg` behind it.
const HEADERS: usize = 16 + 4;
/// `NFULA_PAYLOAD`: the packet from its IP header on, and `NFULA_HWHEADER`: what was before it.
const PAYLOAD: u16 = 9;
const LINK_HEADER: u16 = 16;
/// The bits of an attribute's type that say what it is.
const TYPE: u16 = 0x3fff;

/// Calls `each` with the packets that a datagram tells: the header of its link, which may be empty,
/// and all from the IP header on.
pub fn packets<'a>(datagram: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) {
    let mut rest = datagram;
    while let Some(length) = number32(rest, 0).filter(|length| *length >= HEADERS) {
        let Some(message) = rest.get(..length) else { return };
        if number16(message, 4) == Some(PACKET)
            && let Some(attributes) = message.get(HEADERS..)
            && let Some(packet) = attribute(attributes, PAYLOAD)
        {
            each(attribute(attributes, LINK_HEADER).unwrap_or_default(), packet);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// The first of a kind among the attributes of a message.
fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    loop {
        let length = usize::from(number16(rest, 0)?);
        let value = rest.get(4..length)?;
        if number16(rest, 2)? & TYPE == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// A number in the host's order.
fn number16(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn number32(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?)).ok()
}
