//! The monitor: one small process per running guest.
//!
//! It is init's parent, keeps the console and the log, and executes `holm monitor-ended` when init
//! has ended. The program is `holm-init` ([`IMAGE`]), executed from a sealed memfd so that neither
//! a guest nor an upgrade of `holm` on the disk can change it, in the role that its first argument
//! `[holm] NAME` gives it.
//!
//! What it is given, what it reports at the end, and the messages between it and its clients are in
//! `holm_proto`: [`handoff`](holm_proto::handoff), [`ended`](holm_proto::ended),
//! [`client`](holm_proto::client). A client that does not read is dropped when it is 1 MiB behind.

mod become_monitor;
mod client;
mod console;
mod error;
mod handoff;
mod image;
mod logs;
mod orphan_console;
mod socket;
#[cfg(test)]
mod tests;

pub use become_monitor::become_monitor;
pub use console::{Console, ConsoleEnd};
pub use error::Error;
pub use handoff::{Flows, Handoff, Responder};
pub use holm_proto::client::CLIENTS_MAX;
pub use holm_proto::path::MONITOR_SOCKET;
pub use holm_proto::{Ended, How};
pub use image::IMAGE;
pub use logs::Logs;
pub use orphan_console::orphan_console;
pub use socket::listen;
