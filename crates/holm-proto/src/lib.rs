//! The protocol between the engine (`holm`) and the program of monitors and minimal inits
//! (`holm-init`): each constant and each message once, with its writer and its parser.
//!
//! | module | from | to | by |
//! |---|---|---|---|
//! | [`handoff`] | the launcher | the monitor | environment and descriptors |
//! | [`lease`] | the launcher | the monitor's responder | an environment variable |
//! | [`flow`] | the monitor | the engine | a file |
//! | [`client`] | clients | the monitor, and back | packets on its socket |
//! | [`ended`] | the monitor | the engine | arguments, a file, a packet |
//! | [`init`] | the launcher | minimal init | arguments |
//! | [`path`] | | | names that both sides use |
//!
//! Writers that holm-init uses do without `core::fmt`, which would cost each monitor a page.
#![no_std]
#![forbid(unsafe_code)]

pub mod client;
pub mod ended;
pub mod flow;
pub mod handoff;
pub mod init;
pub mod lease;
pub mod path;
mod text;

pub use ended::{Ended, How};
pub use flow::Flow;
pub use lease::Lease;
pub use text::Text;

/// The descriptor under which minimal init keeps the master of its console.
///
/// With it open in process 1 the guest can go on writing while no monitor reads, and the next
/// monitor takes it from there.
pub const CONSOLE_MASTER: i32 = 10;
