//! The escape filter: a guest's output on the user's terminal.
//!
//! Control sequences in a guest's output could move the cursor over earlier lines, set the window
//! title, or make the terminal send a reply that the user's shell would execute.

use super::write_all;
use rustix::termios::isatty;
use std::io;
use std::os::fd::BorrowedFd;

/// Where a guest's output goes. On a terminal control characters are shown as text (`^[`, `\x9b`),
/// except newlines, tabs and colours; elsewhere bytes are copied unchanged.
#[derive(Debug)]
pub struct GuestOutput<'a> {
    output: BorrowedFd<'a>,
    filter: Option<EscapeFilter>,
}

impl<'a> GuestOutput<'a> {
    /// Filters if `output` is a terminal.
    pub fn new(output: BorrowedFd<'a>) -> Self {
        Self { output, filter: isatty(output).then(EscapeFilter::default) }
    }

    /// Never filters: for a user who works on the guest's terminal.
    pub fn raw(output: BorrowedFd<'a>) -> Self {
        Self { output, filter: None }
    }

    /// Writes all of `bytes`, except an unfinished sequence at the end, which is kept until its
    /// rest comes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.filter {
            None => write_all(self.output, bytes),
            Some(filter) => write_all(self.output, &filter.take(bytes)),
        }
    }

    /// Writes what was kept, and resets the colour.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.filter {
            None => Ok(()),
            Some(filter) => write_all(self.output, &filter.finish()),
        }
    }
}

impl io::Write for GuestOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        GuestOutput::write(self, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sequence that is longer is not a colour, and is shown as text.
const LONGEST: usize = 32;

const RESET: &[u8] = b"\x1b[0m";

/// Passes text and colours, and shows everything else as text.
#[derive(Debug, Default)]
pub struct EscapeFilter {
    /// The beginning of a sequence whose rest is to come.
    held: Vec<u8>,
    coloured: bool,
}

/// What a text begins with, and its length in bytes.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Text(usize),
    Colour(usize),
    Control(usize),
    /// Carriage returns before a newline: the terminal adds one itself.
    Nothing(usize),
    Unfinished,
}

impl EscapeFilter {
    /// The filtered `bytes`; an unfinished sequence at the end is kept until its rest comes.
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

    /// What was kept, and the reset of a colour.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        show(&std::mem::take(&mut self.held), &mut shown);
        if std::mem::take(&mut self.coloured) {
            shown.extend(RESET);
        }
        shown
    }

    /// Writes one piece and returns what follows it.
    fn put<'a>(&mut self, piece: Piece, text: &'a [u8], shown: &mut Vec<u8>) -> &'a [u8] {
        let len = match piece {
            Piece::Text(len) => {
                // A colour ends with its line, so an interrupted command leaves none to the shell.
                if text[0] == b'\n' && std::mem::take(&mut self.coloured) {
                    shown.extend(RESET);
                }
                shown.extend(&text[..len]);
                len
            }
            Piece::Colour(len) => {
                self.coloured = &text[..len] != RESET;
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

/// `ESC [ 1;31 m` sets a colour; any other sequence is not passed.
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
        Some(c) if c.is_control() || is_deceptive(c) => Piece::Control(c.len_utf8()),
        Some(c) => Piece::Text(c.len_utf8()),
        None => Piece::Control(1),
    }
}

/// Characters that reorder the text around them or cannot be seen, so that a line could read as
/// another. The joiners (U+200C, U+200D) are not among them: Persian and emoji need them.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Bytes that are not text, in a visible form.
fn show(bytes: &[u8], shown: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            0..0x20 | 0x7f => shown.extend([b'^', byte ^ 0x40]),
            b' '..=b'~' => shown.push(byte),
            _ => shown.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
}
