#![forbid(unsafe_code)]
#![allow(clippy::format_push_string, reason = "a report is written once")]
//! Measures Holm beside its peers, side by side and in turns, and writes the report.

mod machine;
mod options;
mod peers;
mod race;
mod sections;
mod stage;
mod stats;

use std::fs;
use std::process::ExitCode;

use options::Options;
use sections::{ALL, Section};
use stage::Stage;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("holm-bench: {problem}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("holm-bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every section could be measured.
fn run(options: &Options) -> Result<bool, String> {
    let known = |name: &String| ALL.iter().any(|section| section.name == name);
    if let Some(unknown) = options.sections.iter().find(|name| !known(name)) {
        return Err(format!("there is no section {unknown}\n{}", options::USAGE));
    }
    let stage = Stage::new(options)?;
    let mut text = format!(
        "# What a start costs\n\nWritten by `make bench` ({} rounds). Wall time of whole processes, from before the fork until \
         they were waited for; all in a table took turns, in an order drawn anew for each round; three rounds were not counted. A ratio is the median over pairs \
         from the same round: compare ratios, not milliseconds of different tables.\n\n{}",
        options.rounds,
        machine::describe(&stage.holm)
    );
    let mut complete = true;
    for Section { name, title, run } in ALL {
        if !options.sections.is_empty() && !options.sections.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("holm-bench: {title}");
        let body = run(&stage, options.rounds).unwrap_or_else(|problem| {
            eprintln!("holm-bench: {name}: {problem}");
            complete = false;
            format!("Not measured: {problem}\n")
        });
        text += &format!("\n## {title}\n\n{body}");
    }
    peers::clean_up(&stage);
    let out = &options.out;
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::write(out, &text).map_err(|e| format!("{}: {e}", out.display()))?;
    print!("{text}");
    Ok(complete)
}
