//! `holm logs`.

use std::io::{self, Write, stdout};
use std::os::fd::AsFd;

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;
use holm::terminal::GuestOutput;
use holm::{Code, Coded, monitor};

use crate::context::{self, Context};
use crate::failure::Failure;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Logs>(Group::Inside, "logs", "Print what a guest wrote to its console")
        .aliases(&["log"])
        .examples(
            "holm logs web\n\
             holm logs -n 20 -f web     # the last 20 lines, and those to come\n\
             holm logs --json web       # a document for each line\n\n\
             Holm keeps the last 1 to 2 MiB of each guest.",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Logs {
    /// Go on with what the guest writes, until it has ended
    #[arg(long, short)]
    follow: bool,
    /// Begin with the last LINES lines
    #[arg(long, short = 'n', visible_alias = "tail", value_name = "LINES", value_parser = line_count)]
    #[arg(allow_negative_numbers = true)]
    lines: Option<usize>,
    /// The guest
    name: String,
}

fn line_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number of lines; write one such as 20"))
}

impl Run for Logs {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look()?;
        let name = context::guest(&pool, &self.name)?;
        let more = || match guest::is_active(&Guest::new(&pool, &name)) {
            Ok(active) => active,
            // A guest that was removed meanwhile writes no more. What only could not be looked at
            // may go on.
            Err(error) => error.details().code != Code::GuestNotFound,
        };
        let logs = monitor::Logs {
            directory: &pool.guest_dir(&name),
            lines: self.lines,
            follow_while: self.follow.then_some(&more),
        };
        let written = if context.json { lines(&logs, &name) } else { text(&logs) };
        match written {
            // A reader that has gone (`holm logs web | head`) is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => {
                let message = format!("cannot read the log of {name}: {error}");
                return Err(Failure::new(Code::SystemError, message).object(&name).reason(error));
            }
            Ok(()) => {}
        }
        if !context.quiet {
            // What the guest itself could not write into its log.
            let (this, last) = guest::oom_kills(&Guest::new(&pool, &name))?;
            for (kills, run) in [(Some(this), "this"), (last, "the last")] {
                let what = match kills {
                    Some(0) => continue,
                    Some(kills) => {
                        let kills = term::processes(kills);
                        format!("ran out of memory: {kills} killed in {run} run")
                    }
                    None => format!("may have run out of memory in {run} run: it is not known"),
                };
                term::print_error(&format!("holm: guest {name} {what}\n"));
            }
        }
        Ok(0)
    }
}

/// Writes the log as it is; on a terminal without control sequences.
fn text(logs: &monitor::Logs<'_>) -> io::Result<()> {
    let output = stdout();
    let mut output = GuestOutput::new(output.as_fd());
    logs.write(&mut output)?;
    output.finish()
}

/// Writes a document for each line of the log.
fn lines(logs: &monitor::Logs<'_>, guest: &Name) -> io::Result<()> {
    let mut output = Lines { guest, unfinished: Vec::new(), output: stdout().lock() };
    logs.write(&mut output)?;
    if output.unfinished.is_empty() { Ok(()) } else { output.write_all(b"\n") }
}

/// A line of more bytes becomes several documents: a guest may write one without an end.
const LONGEST: usize = 64 << 10;

/// Makes documents of the lines that are written to it.
struct Lines<'a> {
    guest: &'a Name,
    /// The begin of a line that the next bytes will end.
    unfinished: Vec<u8>,
    output: io::StdoutLock<'static>,
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(part);
            if part.ends_with(b"\n") || self.unfinished.len() > LONGEST {
                let line = std::mem::take(&mut self.unfinished);
                let text = String::from_utf8_lossy(&line);
                // A console ends its lines with both.
                let text = text.trim_end_matches(['\r', '\n']);
                let line = output::Line { name: self.guest.as_str(), text };
                writeln!(self.output, "{}", output::json(&line))?;
            }
        }
        self.output.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
