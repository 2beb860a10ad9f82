//! Just enough netlink: several requests in one `send`, one acknowledgement for all of them.
//!
//! The kernel processes every message of a datagram in order and reports each that failed, whether
//! it asked for an acknowledgement or not. So only the last one asks, and a start takes two system
//! calls for a dozen requests.

mod read;
mod socket;
mod write;

#[cfg(feature = "fuzzing")]
pub use read::Messages;
pub use read::{Attributes, find, number, text};
pub use socket::{Refused, Socket};
pub use write::{Batch, CREATE, DUMP, EXCL};
