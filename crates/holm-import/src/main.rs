#![forbid(unsafe_code)]
//! holm-import: makes a base. Started by `holm base import`, never by a person.
//!
//! It is a program of its own because [`holm_image`] brings openssl and tokio, and the program that
//! starts guests must stay small. Progress goes to standard output, an error to standard error.

mod args;
mod error;
mod import;
mod report;

use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

fn main() -> ExitCode {
    // If `holm` is killed, nobody waits for the base any more.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match args::parse(std::env::args_os().skip(1)).and_then(|args| import::import(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.to_text());
            ExitCode::FAILURE
        }
    }
}
