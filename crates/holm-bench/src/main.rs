#![forbid(unsafe_code)]
#![allow(clippy::format_push_string, reason = "a report is written once")]
//! Measures Holm and comparable tools in turns, and writes the report.

mod build;
mod cost;
mod cpu_time;
mod free;
mod machine;
mod meminfo;
mod options;
mod peers;
mod plot;
mod rounds;
mod sections;
mod stage;
mod stats;

use std::fs;
use std::process::ExitCode;

use options::Options;
use sections::{ALL, Report, Section};
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
    let wanted = |section: &&Section| match &options.sections[..] {
        [] => section.report.by_default,
        names => names.iter().any(|name| name == section.name),
    };
    let sections: Vec<&Section> = ALL.iter().filter(wanted).collect();
    let report = sections[0].report;
    let out = &options.out;
    if let Some(directory) = out.parent() {
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    let mut text = introduction(report, &stage, options.rounds);
    let mut complete = true;
    for Section { name, title, run, .. } in sections {
        eprintln!("holm-bench: {title}");
        let body = run(&stage, options.rounds).unwrap_or_else(|problem| {
            eprintln!("holm-bench: {name}: {problem}");
            complete = false;
            format!("Not measured: {problem}\n")
        });
        text += &format!("\n## {title}\n\n{body}");
    }
    peers::clean_up(&stage);
    fs::write(out, &text).map_err(|e| format!("{}: {e}", out.display()))?;
    print!("{text}");
    Ok(complete)
}

/// What a report says about another build.
const BEFORE: &str = "\
Rows named `before` are another build of holm, with a Holm root of its own, which took its turn in
the same rounds; rows named `again` are the build that is measured, copied once more, with a third
root. `times now` above 1 means that holm has become faster, as far as it is further from 1 than it
is in the row `again`, of the same program.\n\n";

fn introduction(report: &Report, stage: &Stage, rounds: usize) -> String {
    let before = if stage.holms.len() > 1 { BEFORE } else { "" };
    let machine = machine::describe(&stage.holms);
    format!(
        "# {}\n\nWritten by `make bench` ({rounds} rounds).\n\n{}{before}{machine}",
        report.title, report.introduction
    )
}
