//! Writing messages.

use crate::net::request::Request;

pub const REQUEST: u16 = 0x001;
pub const ACK: u16 = 0x004;
pub const ECHO: u16 = 0x008;
pub const DUMP: u16 = 0x300;
pub const REPLACE: u16 = 0x100;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;

pub const HEADER: usize = 16;
const NESTED: u16 = 0x8000;

/// Messages to be sent together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    start: usize,
    requests: Vec<Request>,
}

impl Batch {
    /// Begins a message of a type, with a family header; `request` is its name in errors.
    pub fn message(&mut self, request: Request, kind: u16, flags: u16, header: &[u8]) -> &mut Self {
        self.start = self.bytes.len();
        let sequence = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        self.requests.push(request);
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.raw(header)
    }

    /// Appends plain bytes, padded to four.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let length = u32::try_from(self.bytes.len() - self.start).unwrap_or(u32::MAX);
        self.bytes[self.start..self.start + 4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Appends an attribute.
    pub fn attr(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(value.len() + 4).expect("netlink attributes stay below 64 KiB");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.raw(value)
    }

    /// Appends an attribute with a 32-bit number in the host's byte order.
    pub fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute with NUL-terminated text.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        self.attr(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute that contains what `inner` appends.
    pub fn nest(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.attr(kind | NESTED, &[]);
        inner(self);
        let length =
            u16::try_from(self.bytes.len() - start).expect("netlink attributes stay below 64 KiB");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Requests an acknowledgement of the last message. Returns its number, counted from 0.
    pub fn acknowledge(&mut self) -> u32 {
        self.bytes[self.start + 6] |= ACK.to_ne_bytes()[0];
        u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
    }

    /// All messages, as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the first message requests a dump, to which the reply may take several datagrams.
    pub fn is_dump(&self) -> bool {
        u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) & DUMP == DUMP
    }

    /// Whether the first message requests an acknowledgement, after which nothing more comes.
    pub fn is_acknowledged(&self) -> bool {
        self.bytes[6] & ACK.to_ne_bytes()[0] != 0
    }

    /// The request with a sequence number.
    pub fn request(&self, sequence: u32) -> Request {
        let request = usize::try_from(sequence).ok().and_then(|at| self.requests.get(at));
        request.copied().unwrap_or(Request::Exchange)
    }
}
