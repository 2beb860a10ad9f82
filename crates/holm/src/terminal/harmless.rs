//! A guest's words on the operator's terminal.
//!
//! A terminal obeys what it is shown: it moves its cursor over lines that were there, sets its title, and
//! types answers into the shell that runs next. A guest must not command it.

use super::write_all;
use rustix::termios::isatty;
use std::io;
use std::os::fd::BorrowedFd;

/// Where a guest's words go. On a terminal control characters become visible (`^[`, `\x9b`), but for
/// newlines, tabs and colours; elsewhere bytes pass as they are.
#[derive(Debug)]
pub struct Harmless<'a> {
    output: BorrowedFd<'a>,
    filter: Option<Filter>,
}

impl<'a> Harmless<'a> {
    /// Harmless if `output` is a terminal.
    pub fn new(output: BorrowedFd<'a>) -> Self {
        Self { output, filter: isatty(output).then(Filter::default) }
    }

    /// Passes everything: for who works on the guest's terminal.
    pub fn raw(output: BorrowedFd<'a>) -> Self {
        Self { output, filter: None }
    }

    /// Writes all of `bytes`, but for an unfinished sequence, which waits for its rest.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.filter {
            None => write_all(self.output, bytes),
            Some(filter) => write_all(self.output, &filter.take(bytes)),
        }
    }

    /// Writes what still waits, and ends a colour.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.filter {
            None => Ok(()),
            Some(filter) => write_all(self.output, &filter.finish()),
        }
    }
}

/// A colour, a character or a line's end is never longer than this; what is, is none.
const LONGEST: usize = 32;

const PLAIN: &[u8] = b"\x1b[0m";

/// Lets text and colours through, and shows everything else as text.
#[derive(Debug, Default)]
pub struct Filter {
    /// The begin of a sequence that the next bytes will end.
    held: Vec<u8>,
    coloured: bool,
}

/// What stands at the begin of a text, and how many bytes it takes.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Text(usize),
    Colour(usize),
    Control(usize),
    /// Returns of the carriage before a newline, which takes care of that itself.
    Nothing(usize),
    Unfinished,
}

impl Filter {
    /// What of `bytes` may be shown; an unfinished sequence waits for its rest.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        let text = [&std::mem::take(&mut self.held), bytes].concat();
        let mut rest = &text[..];
        while !rest.is_empty() {
            let piece = piece(&rest[..rest.len().min(LONGEST)]);
            if matches!(piece, Piece::Unfinished) && rest.len() < LONGEST {
                self.held = rest.to_vec();
                break;
            }
            rest = self.put(piece, rest, &mut shown);
        }
        shown
    }

    /// What still waits, and the end of a colour.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        show(&std::mem::take(&mut self.held), &mut shown);
        if std::mem::take(&mut self.coloured) {
            shown.extend(PLAIN);
        }
        shown
    }

    /// Writes one piece and gives what follows it.
    fn put<'a>(&mut self, piece: Piece, text: &'a [u8], shown: &mut Vec<u8>) -> &'a [u8] {
        let len = match piece {
            Piece::Text(len) => {
                // No colour reaches the next line, nor the shell of who interrupts.
                if text[0] == b'\n' && std::mem::take(&mut self.coloured) {
                    shown.extend(PLAIN);
                }
                shown.extend(&text[..len]);
                len
            }
            Piece::Colour(len) => {
                self.coloured = &text[..len] != PLAIN;
                shown.extend(&text[..len]);
                len
            }
            Piece::Nothing(len) => len,
            Piece::Control(len) => {
                show(&text[..len], shown);
                len
            }
            Piece::Unfinished => {
                show(&text[..1], shown);
                1
            }
        };
        &text[len..]
    }
}

fn piece(text: &[u8]) -> Piece {
    match text[0] {
        b'\n' | b'\t' | b' '..=b'~' => Piece::Text(1),
        b'\r' => match text.iter().position(|&byte| byte != b'\r') {
            None => Piece::Unfinished,
            Some(len) if text[len] == b'\n' => Piece::Nothing(len),
            Some(len) => Piece::Control(len),
        },
        0x1b => colour(text),
        0x80.. => character(text),
        _ => Piece::Control(1),
    }
}

/// `ESC [ 1;31 m` sets a colour; every other sequence does something else.
fn colour(text: &[u8]) -> Piece {
    match text.get(1) {
        None => Piece::Unfinished,
        Some(b'[') => {
            let end = text[2..].iter().position(|byte| !matches!(byte, b'0'..=b';'));
            match end {
                None => Piece::Unfinished,
                Some(end) if text[2 + end] == b'm' => Piece::Colour(end + 3),
                Some(_) => Piece::Control(1),
            }
        }
        Some(_) => Piece::Control(1),
    }
}

/// A character beyond ASCII; those from U+0080 to U+009F are controls.
fn character(text: &[u8]) -> Piece {
    let first = &text[..text.len().min(4)];
    let whole = match std::str::from_utf8(first) {
        Ok(whole) => whole,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return Piece::Unfinished,
        Err(_) => return Piece::Control(1),
    };
    match whole.chars().next() {
        Some(c) if c.is_control() => Piece::Control(c.len_utf8()),
        Some(c) => Piece::Text(c.len_utf8()),
        None => Piece::Control(1),
    }
}

/// Bytes that are no text, as one sees them.
fn show(bytes: &[u8], shown: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            0..0x20 | 0x7f => shown.extend([b'^', byte ^ 0x40]),
            b' '..=b'~' => shown.push(byte),
            _ => shown.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
}
