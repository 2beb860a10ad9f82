//! Just enough netlink: several requests in one `send`, one acknowledgement for all of them.
//!
//! The kernel works through every message of a datagram in order and reports each that failed, acknowledged or not;
//! so only the last one asks for an acknowledgement, and a start costs two system calls for a dozen requests.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

pub const REQUEST: u16 = 0x001;
pub const ACK: u16 = 0x004;
pub const DUMP: u16 = 0x300;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NESTED: u16 = 0x8000;

/// A message that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// What the message was to do, as in "while {what}".
    pub what: &'static str,
    /// The kernel's answer.
    pub errno: Errno,
}

impl Refused {
    fn io(errno: Errno) -> Self {
        Self { what: "talking to the kernel over netlink", errno }
    }
}

/// Messages to be sent together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    start: usize,
    what: Vec<&'static str>,
}

impl Batch {
    /// Begins a message of a type with a family header; `what` names it in errors.
    pub fn message(
        &mut self,
        what: &'static str,
        kind: u16,
        flags: u16,
        header: &[u8],
    ) -> &mut Self {
        self.start = self.bytes.len();
        let sequence = u32::try_from(self.what.len()).unwrap_or(u32::MAX);
        self.what.push(what);
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

    /// Appends an attribute that holds a 32-bit number of the host's byte order.
    pub fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute that holds text with its closing NUL.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        self.attr(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute that holds what `inner` appends.
    pub fn nest(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.attr(kind | NESTED, &[]);
        inner(self);
        let length =
            u16::try_from(self.bytes.len() - start).expect("netlink attributes stay below 64 KiB");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Asks for an acknowledgement of the message begun last.
    pub fn acknowledge(&mut self) -> &mut Self {
        self.bytes[self.start + 6] |= ACK.to_ne_bytes()[0];
        self
    }

    fn what(&self, sequence: u32) -> &'static str {
        usize::try_from(sequence)
            .ok()
            .and_then(|at| self.what.get(at))
            .copied()
            .unwrap_or("talking to the kernel over netlink")
    }
}

/// A netlink socket of the calling thread's network namespace.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// For links, addresses and routes.
    pub fn route() -> Result<Self, Refused> {
        Self::open(None)
    }

    /// For nftables.
    pub fn netfilter() -> Result<Self, Refused> {
        Self::open(Some(netlink::NETFILTER))
    }

    fn open(protocol: Option<Protocol>) -> Result<Self, Refused> {
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .map(Self)
            .map_err(Refused::io)
    }

    /// Sends a batch whose message `last` (counted from 0) is acknowledged, and waits for that. The first refusal wins.
    fn transact(&self, batch: &Batch, last: u32) -> Result<(), Refused> {
        send(&self.0, &batch.bytes, SendFlags::empty()).map_err(Refused::io)?;
        let mut refused: Option<(u32, Errno)> = None;
        let mut buffer = [0u8; 8192];
        loop {
            let (length, _) =
                recv(&self.0, &mut buffer[..], RecvFlags::empty()).map_err(Refused::io)?;
            for message in Messages(&buffer[..length]) {
                if message.kind != NLMSG_ERROR {
                    continue;
                }
                if let Some(errno) = message.error()
                    && refused.is_none_or(|(sequence, _)| message.sequence < sequence)
                {
                    refused = Some((message.sequence, errno));
                }
                if message.sequence == last {
                    return refused.map_or(Ok(()), |(sequence, errno)| {
                        Err(Refused { what: batch.what(sequence), errno })
                    });
                }
            }
        }
    }

    /// Sends a batch and waits until the kernel has worked through it.
    pub fn execute(&self, batch: &mut Batch) -> Result<(), Refused> {
        batch.acknowledge();
        self.transact(batch, u32::try_from(batch.what.len() - 1).unwrap_or(u32::MAX))
    }

    /// Sends an nftables transaction: all of `batch` happens or nothing does.
    pub fn commit(&self, fill: impl FnOnce(&mut Batch)) -> Result<(), Refused> {
        // nfgenmsg: any family, version 0, the subsystem (nftables, 10) in network order.
        const SUBSYSTEM: [u8; 4] = [0, 0, 0, 10];
        let mut batch = Batch::default();
        batch.message("opening a transaction", 0x10, 0, &SUBSYSTEM);
        fill(&mut batch);
        batch.acknowledge();
        let last = u32::try_from(batch.what.len() - 1).unwrap_or(u32::MAX);
        batch.message("closing a transaction", 0x11, 0, &SUBSYSTEM);
        self.transact(&batch, last)
    }

    /// Sends a batch of one question and hands every message of the answer to `each`.
    pub fn ask(&self, batch: &Batch, mut each: impl FnMut(u16, &[u8])) -> Result<(), Refused> {
        send(&self.0, &batch.bytes, SendFlags::empty()).map_err(Refused::io)?;
        let dump = u16::from_ne_bytes([batch.bytes[6], batch.bytes[7]]) & DUMP == DUMP;
        let mut buffer = vec![0u8; 32768];
        loop {
            let (length, _) =
                recv(&self.0, &mut buffer[..], RecvFlags::empty()).map_err(Refused::io)?;
            for message in Messages(&buffer[..length]) {
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        return message
                            .error()
                            .map_or(Ok(()), |errno| Err(Refused { what: batch.what(0), errno }));
                    }
                    kind => each(kind, message.payload),
                }
            }
            if !dump {
                return Ok(());
            }
        }
    }
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    payload: &'a [u8],
}

impl Message<'_> {
    fn error(&self) -> Option<Errno> {
        let code = i32::from_ne_bytes(self.payload.get(..4)?.try_into().ok()?);
        (code != 0).then(|| Errno::from_raw_os_error(-code))
    }
}

/// The messages of a datagram.
struct Messages<'a>(&'a [u8]);

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

/// The attributes of a message after its family header, or inside another attribute: type without flags, and value.
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

/// The attribute of a type, if the message has it.
pub fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    Attributes(attributes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A 32-bit number of the host's byte order.
pub fn number(value: &[u8]) -> Option<u32> {
    value.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Text up to its NUL.
pub fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
}
