#![forbid(unsafe_code)]
//! holm-import: the program that writes images, of bases and of guests that are unified. It is run
//! by `holm`, not by people.
//!
//! It is a separate program because [`holm_image`] links openssl and tokio, and the program that
//! starts guests must stay small. It writes progress to standard output, and errors to standard
//! error.

mod args;
mod check;
mod error;
mod import;
mod report;
mod restore;
mod switch;
mod unify;

use std::process::ExitCode;

use holm::pool::Pool;
use rustix::process::{Signal, set_parent_process_death_signal};

fn main() -> ExitCode {
    // If `holm` is killed, nothing waits for the base any more.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match args::parse(std::env::args_os().skip(1)).and_then(|args| work(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.to_text());
            ExitCode::FAILURE
        }
    }
}

fn work(args: &args::Args) -> error::Result<()> {
    let pool = Pool::open(&args.root)?;
    match &args.work {
        args::Work::Import(import) => import::import(&pool, import),
        args::Work::Restore { mirror, source } => {
            restore::restore(&pool, source, mirror.as_deref())
        }
        args::Work::Check(only) => check::check(&pool, only),
        args::Work::Unify(guests, options) => unify::unify(&pool, guests, options),
        args::Work::Switch { guest, base } => switch::switch(&pool, guest, base),
    }
}
