#![forbid(unsafe_code)]
//! holm-import: the program that imports bases. It is run by `holm base import`, not by people.
//!
//! It is a separate program because [`holm_image`] links openssl and tokio, and the program that
//! starts guests must stay small. It writes progress to standard output, and errors to standard
//! error.

mod args;
mod error;
mod import;
mod report;

use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

fn main() -> ExitCode {
    // If `holm` is killed, nothing waits for the base any more.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match args::parse(std::env::args_os().skip(1)).and_then(|args| import::import(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.to_text());
            ExitCode::FAILURE
        }
    }
}
