//! The monitor of one guest: its init's parent, its console, its log, its flows.
//!
//! [`holm_proto`] describes what it is given and what it says to its clients.

mod clients;
mod console;
mod end;
mod flows;
mod guest;
mod hand_over;
mod log;
mod notify;
mod oom;
mod run;
mod timer;
mod watch;

pub use run::run;
