#![forbid(unsafe_code)]
//! The `holm` command: reads the command line, calls the engine, and shows what it says.

mod cli;
mod context;
mod failure;
mod options;
mod progress;
mod ready;
mod settings;
mod several;
mod term;
mod verbs;
mod words;

fn main() -> std::process::ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    cli::run(&args)
}
