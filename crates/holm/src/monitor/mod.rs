//! The monitor: one small process per running guest.
//!
//! It is init's parent, keeps the console and the log, and executes `holm monitor-ended` when init has ended. The
//! program is `holm-init` ([`IMAGE`]), executed from a sealed memfd so that neither a guest nor an upgrade of `holm`
//! on the disk can change it, in the role that its first argument `[holm] NAME` gives it.
//!
//! # What it is given
//! Descriptors, whose numbers stand in the environment: `MONITOR_FDS="pid=123 init=5 cgroup=6 ..."`, with the guest's
//! root in `MONITOR_ROOT` and the program to execute at the end in `MONITOR_HOLM` ([`Handoff`]).
//!
//! # What it does in the end
//! It notes which run it was (the inode of init's pidfd) and the words of [`Ended`] in the guest's folder (file
//! `ended`) and executes, with the same pid, `holm monitor-ended --root ROOT NAME WORDS...`, with /dev/null as standard input, output and error.
//!
//! # What clients and monitor say to each other
//! Over a `SOCK_SEQPACKET` connection, one message per packet, the first byte its kind:
//!
//! | from | kind | content |
//! |---|---|---|
//! | monitor | `h` | first message; byte 1: whether there is a console to type into (0 or 1) |
//! | monitor | `o` | what the guest wrote |
//! | monitor | `x` | init has ended: the words of [`Ended`] |
//! | client | `i` | at most 1024 bytes to type into the console |
//! | client | `w` | rows and columns of the terminal, two `u16` in little endian |
//!
//! A client that does not read is dropped when it is 1 MiB behind.

mod adopt;
mod client;
mod console;
mod ended;
mod error;
mod handoff;
mod image;
mod init;
mod logs;
mod socket;
#[cfg(test)]
mod tests;

pub use adopt::console_of;
pub use client::{Message, is_alive};
pub use console::{Console, Left};
pub use ended::{Ended, How};
pub use error::Error;
pub use handoff::{Handoff, become_monitor};
pub use image::IMAGE;
pub use init::{InitService, SERVICES_MAX, init_args};
pub use logs::Logs;
pub use socket::{SOCKET, listen};
