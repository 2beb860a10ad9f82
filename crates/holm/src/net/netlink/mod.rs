//! Netlink: several requests in one `send`, with one acknowledgement for all of them.
//!
//! The kernel processes the messages of a datagram in order and reports each one that fails,
//! whether it requested an acknowledgement or not. So only the last one requests it, and a start
//! takes two system calls for a dozen requests.

mod read;
mod socket;
mod write;

#[cfg(feature = "fuzzing")]
pub use read::Messages;
pub use read::{Attributes, find, number, text};
pub use socket::{Refused, Socket};
pub use write::{Batch, CREATE, DUMP, ECHO, EXCL, REPLACE};
