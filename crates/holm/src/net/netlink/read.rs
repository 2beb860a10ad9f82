//! Reading the kernel's replies: the messages of a datagram, and their attributes.

use rustix::io::Errno;

use super::write::HEADER;

/// A message.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    /// The sequence number of its request.
    pub sequence: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// The error in a message of type `NLMSG_ERROR`; an acknowledgement has none.
    pub fn error(&self) -> Option<Errno> {
        let code = i32::from_ne_bytes(self.payload.get(..4)?.try_into().ok()?);
        match code {
            0 => None,
            -4095..0 => Some(Errno::from_raw_os_error(-code)),
            _ => Some(Errno::PROTO),
        }
    }
}

/// The messages of a datagram.
#[derive(Debug)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let head = self.0.get(..HEADER)?;
        let length = usize::try_from(u32::from_ne_bytes(head[..4].try_into().ok()?)).ok()?;
        let payload = self.0.get(HEADER..length)?;
        let message = Message {
            kind: u16::from_ne_bytes([head[4], head[5]]),
            sequence: u32::from_ne_bytes(head[8..12].try_into().ok()?),
            payload,
        };
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// The attributes of a message, after its family header, or inside another attribute. Yields types
/// without flags, and values.
#[derive(Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.0.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & 0x3fff, value))
    }
}

/// The value of the first attribute of a type.
pub fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    Attributes(attributes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A 32-bit number in the host's byte order.
pub fn number(value: &[u8]) -> Option<u32> {
    value.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Text up to its NUL.
pub fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
}
