//! What Holm runs beside and inside its guests: the monitor of a guest, and minimal init.
//!
//! No heap, no threads, no standard library: what it costs is paid once per guest. The program
//! `holm-init` is all of it; the engine uses [`init`] in ephemeral guest, where it is not
//! executed, and tests reach the rest.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod flows;
pub mod init;
mod monitor;
pub mod nflog;
pub mod responder;

use holm_proto::handoff::TITLE;
use holm_sys::bare::{Args, Inherited};

/// The program: what it does is chosen by the name it is started under. `[holm] NAME` is a guest's
/// monitor, anything else its minimal init.
pub fn run(args: Args, inherited: Inherited) -> i32 {
    match args.get(0) {
        Some(name) if name.to_bytes().starts_with(TITLE.as_bytes()) => {
            monitor::run(name, inherited)
        }
        _ => init::run(args, inherited),
    }
}
