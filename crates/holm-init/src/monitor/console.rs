//! The guest's console, whose other end a hostile guest may hold.

use super::timer::bounded;
use holm_proto::client::{INPUT_MAX, MESSAGE_MAX, OUTPUT};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat, fstatfs, major, minor};
use rustix::io::{Errno, read, write};
use rustix::termios::{Winsize, tcsetwinsize};

/// How many reads in one turn, before other events are served.
const READS: usize = 32;

/// `f_type` of devpts.
const DEVPTS_MAGIC: i64 = 0x1cd1;

/// A pty's master, and the input that did not fit into it yet.
pub struct Console {
    pub master: OwnedFd,
    pending: [u8; INPUT_MAX],
    start: usize,
    end: usize,
}

impl Console {
    /// `None` unless `master` is the master of a pty: reading a file that the guest has made may
    /// never return.
    pub fn new(master: OwnedFd) -> Option<Console> {
        let stat = fstat(&master).ok()?;
        let device = (major(stat.st_rdev), minor(stat.st_rdev));
        let pty = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
            && device == (5, 2)
            && fstatfs(&master).ok()?.f_type as i64 == DEVPTS_MAGIC;
        pty.then(|| Console { master, pending: [0; INPUT_MAX], start: 0, end: 0 })
    }

    /// Gives `sink` what the guest wrote, and the guest what is pending; returns whether there may
    /// be more.
    pub fn copy(&mut self, sink: &mut impl FnMut(&[u8])) -> bool {
        self.guarded(|console| {
            console.flush();
            drain(&console.master, sink)
        })
    }

    /// Types `bytes` into the console.
    pub fn input(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.pending.len());
        self.pending[..len].copy_from_slice(&bytes[..len]);
        (self.start, self.end) = (0, len);
        self.guarded(Console::flush);
    }

    /// Whether the guest has not yet taken all of the earlier input.
    pub fn has_pending_input(&self) -> bool {
        self.start < self.end
    }

    /// Tells the guest how large the terminal is.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let _ = tcsetwinsize(&self.master, size);
    }

    /// Runs `work` with the master in non-blocking mode, and under a timer: the guest's init may
    /// share this open file description and make it blocking again at any moment.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Console) -> T) -> T {
        let _ = fcntl_setfl(&self.master, OFlags::RDWR | OFlags::NONBLOCK);
        bounded(|| work(self))
    }

    fn flush(&mut self) {
        while self.has_pending_input() {
            match write(&self.master, &self.pending[self.start..self.end]) {
                Ok(written) => self.start += written,
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(_) => self.start = self.end,
            }
        }
    }
}

/// Gives `sink` what can be read, each time as a message; returns whether there may be more.
fn drain(from: &OwnedFd, sink: &mut impl FnMut(&[u8])) -> bool {
    let mut message = [0; MESSAGE_MAX];
    message[0] = OUTPUT;
    for _ in 0..READS {
        match read(from, &mut message[1..]) {
            Ok(len @ 1..) => sink(&message[..=len]),
            _ => return false,
        }
    }
    true
}
