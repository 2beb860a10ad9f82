#![forbid(unsafe_code)]
//! The `holm` command: reads the command line, calls the engine, and shows what it says.

mod cli;
mod context;
mod failure;
mod global;
mod options;
mod other_tools;
mod output;
mod overview;
mod progress;
mod ready;
mod settings;
mod several;
mod table;
mod term;
mod verb;
mod verbs;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    holm::step::begin();
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let status = cli::run(&args);
    if std::env::var_os("HOLM_TRACE").is_some() {
        for (step, time) in holm::step::report() {
            eprintln!("trace {step} {}", time.as_micros());
        }
    }
    status
}
