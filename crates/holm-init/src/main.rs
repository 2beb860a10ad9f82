//! The small static program that Holm runs beside and inside its guests.
//!
//! Two roles, chosen by the name it is started under: `[holm] NAME` is a guest's monitor, anything else its
//! minimal init. No heap, no threads, no standard library: what it costs is paid once per guest.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod answer;
mod init;
mod monitor;

use holm_sys::bare::Args;

holm_sys::entry!(run);

fn run(args: Args) -> i32 {
    match args.get(0) {
        Some(name) if name.to_bytes().starts_with(b"[holm] ") => monitor::run(name),
        _ => init::run(args),
    }
}
