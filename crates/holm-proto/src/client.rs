//! What a monitor and its clients, those who look at the guest's console, say to each other.
//!
//! Over a `SOCK_SEQPACKET` connection, one message per packet, the first byte its kind:
//!
//! | from | kind | content |
//! |---|---|---|
//! | monitor | `h` | first message; byte 1: whether there is a console to type into (0 or 1) |
//! | monitor | `o` | what the guest wrote |
//! | monitor | `x` | init has ended: an [`Ended`] as text |
//! | client | `i` | at most [`INPUT_MAX`] bytes to type into the console |
//! | client | `w` | rows and columns of the terminal, two `u16` in little endian |

use crate::ended::{self, Ended};

/// The most of the guest's output that one message carries, in bytes.
const OUTPUT_MAX: usize = 4096;

/// How many clients a monitor serves at once; it says nothing to one more, and hangs up.
pub const CLIENTS_MAX: usize = 16;

/// The longest message of a monitor, in bytes.
pub const MESSAGE_MAX: usize = 1 + OUTPUT_MAX;

/// The most input that one message carries, in bytes.
pub const INPUT_MAX: usize = 1024;

/// The longest message of a client, in bytes.
pub const REQUEST_MAX: usize = 1 + INPUT_MAX;

const HELLO: u8 = b'h';
/// The kind of a message with output, for the code that reads the output right behind it.
pub const OUTPUT: u8 = b'o';
const ENDED: u8 = b'x';
const INPUT: u8 = b'i';
const SIZE: u8 = b'w';

/// A monitor's first message; `console` says whether there is one to type into.
pub fn hello(console: bool) -> [u8; 2] {
    [HELLO, u8::from(console)]
}

/// Room for a monitor's last message.
pub const END_MAX: usize = 1 + ended::TEXT_MAX;

/// A monitor's last message, written into `buffer`.
pub fn end(ended: Ended, buffer: &mut [u8; END_MAX]) -> &[u8] {
    buffer[0] = ENDED;
    let len = 1 + ended.write(&mut buffer[1..]);
    &buffer[..len]
}

/// What a monitor says.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Whether there is a console to type into.
    Hello(bool),
    /// What the guest wrote.
    Output(&'a [u8]),
    /// Init has ended.
    Ended(Ended),
    /// Of a newer monitor.
    Other,
}

impl Message<'_> {
    /// Reads one packet; `None` is one that no monitor sends.
    pub fn parse(packet: &[u8]) -> Option<Message<'_>> {
        match packet {
            [HELLO, console, ..] => Some(Message::Hello(*console == 1)),
            [OUTPUT, bytes @ ..] => Some(Message::Output(bytes)),
            [ENDED, status @ ..] => {
                Ended::parse(core::str::from_utf8(status).ok()?).map(Message::Ended)
            }
            [] => None,
            _ => Some(Message::Other),
        }
    }
}

/// What a client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// To type these bytes, at most [`INPUT_MAX`], into the console.
    Input(&'a [u8]),
    /// The size of the client's terminal.
    Size {
        /// Rows.
        rows: u16,
        /// Columns.
        columns: u16,
    },
}

impl Request<'_> {
    /// Reads one packet; `None` is one that no client sends.
    pub fn parse(packet: &[u8]) -> Option<Request<'_>> {
        match *packet {
            [INPUT, ref bytes @ ..] => Some(Request::Input(bytes)),
            [SIZE, r0, r1, c0, c1] => Some(Request::Size {
                rows: u16::from_le_bytes([r0, r1]),
                columns: u16::from_le_bytes([c0, c1]),
            }),
            _ => None,
        }
    }

    /// The packet, written into `buffer`. Of input that is too long the rest is left out.
    pub fn write<'b>(&self, buffer: &'b mut [u8; REQUEST_MAX]) -> &'b [u8] {
        match *self {
            Request::Input(bytes) => {
                let len = bytes.len().min(INPUT_MAX);
                buffer[0] = INPUT;
                buffer[1..=len].copy_from_slice(&bytes[..len]);
                &buffer[..=len]
            }
            Request::Size { rows, columns } => {
                let ([r0, r1], [c0, c1]) = (rows.to_le_bytes(), columns.to_le_bytes());
                buffer[..5].copy_from_slice(&[SIZE, r0, r1, c0, c1]);
                &buffer[..5]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::How;

    #[test]
    fn messages_are_read_as_the_monitor_writes_them() {
        let ended = Ended { how: How::Killed(1), adopted: false };
        for (packet, message) in [
            (&b"h\x01"[..], Some(Message::Hello(true))),
            (b"h\0", Some(Message::Hello(false))),
            (b"oab", Some(Message::Output(b"ab"))),
            (b"o", Some(Message::Output(b""))),
            (b"xkilled 1", Some(Message::Ended(ended))),
            (b"xnonsense", None),
            (b"h", Some(Message::Other)),
            (b"?", Some(Message::Other)),
            (b"", None),
        ] {
            assert_eq!(Message::parse(packet), message, "{packet:?}");
        }
        assert_eq!(hello(true), *b"h\x01");
        assert_eq!(end(ended, &mut [0; END_MAX]), b"xkilled 1");
    }

    #[test]
    fn requests_are_read_as_clients_write_them() {
        for (request, packet) in [
            (Request::Input(b"ls\n"), &b"ils\n"[..]),
            (Request::Input(b""), b"i"),
            (Request::Size { rows: 24, columns: 0x0150 }, b"w\x18\0\x50\x01"),
        ] {
            let mut buffer = [0; REQUEST_MAX];
            assert_eq!(request.write(&mut buffer), packet);
            assert_eq!(Request::parse(packet), Some(request));
        }
        for packet in [&b""[..], b"w\x18\0\x50", b"?"] {
            assert_eq!(Request::parse(packet), None, "{packet:?}");
        }
        let long = Request::Input(&[b'x'; INPUT_MAX + 1]);
        assert_eq!(long.write(&mut [0; REQUEST_MAX]).len(), REQUEST_MAX);
    }
}
