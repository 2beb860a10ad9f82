//! `holm ls`.

use clap::Args;
use holm::config::NetMode;
use holm::guest::{self, Status, Summary};

use crate::context::Context;
use crate::output;
use crate::term::{self, Cell};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Ls>(Group::Guests, "ls", "List the guests")
    .aliases(&["list"])
    .examples("holm ls\nholm ls --running\nholm ls -q            # names only, for scripts\nholm ls --json");

/// Arguments.
#[derive(Debug, Args)]
pub struct Ls {
    /// Only guests that run
    #[arg(long, short)]
    running: bool,
    /// Accepted for other tools' sake: all guests are listed
    #[arg(long, short, hide = true)]
    all: bool,
}

impl Run for Ls {
    fn run(self, context: &Context) -> Outcome {
        let mut guests = guest::list(&context.pool()?)?;
        // The same for all of them.
        if let Some(what) = guests.iter().find_map(|guest| guest.ruleset_notice.as_ref()) {
            term::print_error(&format!("warning: {what}\n"));
        }
        if self.running {
            guests.retain(|g| g.record.is_some());
        }
        if context.json {
            let all = guests.iter().map(|guest| output::json(&output::Guest::from(guest)));
            term::print(&format!("{}\n", output::array(all)));
        } else if context.quiet {
            for guest in &guests {
                term::print(&format!("{}\n", guest.name));
            }
        } else {
            let head = ["NAME", "STATUS", "BASE", "ADDRESS", "MEMORY", "TASKS", "UP"];
            let rows: Vec<Vec<Cell>> = guests.iter().map(row).collect();
            term::print(&term::table(&head, &rows, context.colour));
            if rows.is_empty() {
                term::print_error("there are no guests; holm launch NAME --base BASE makes one\n");
            }
        }
        Ok(0)
    }
}

fn row(guest: &Summary) -> Vec<Cell> {
    let none = || "-".to_owned();
    let usage = guest.usage.as_ref();
    vec![
        Cell::from(&guest.name),
        status(guest),
        Cell::from(&guest.base),
        Cell::from(address(guest).unwrap_or_else(none)),
        Cell::from(usage.and_then(|u| u.memory).map_or_else(none, term::size)),
        Cell::from(usage.and_then(|u| u.pids).map_or_else(none, |n| n.to_string())),
        Cell::from(guest.record.as_ref().map_or_else(none, |s| term::span(s.age()))),
    ]
}

/// The status in its colour, with what needs attention.
pub fn status(guest: &Summary) -> Cell {
    let (status, colour) = status_text(guest.status);
    let mut text = status.to_owned();
    let remarks = [
        (guest.problem.is_some() && guest.status != Status::Unknown, "settings broken"),
        (guest.monitor_missing, "no monitor"),
        (guest.oom_kills > 0, "out of memory"),
    ];
    for (_, remark) in remarks.into_iter().filter(|r| r.0) {
        text = format!("{text}, {remark}");
    }
    term::coloured(text, colour)
}

/// The name of a status, and its colour.
pub fn status_text(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Stopped => ("stopped", term::DIM),
        Status::Running => ("running", term::GREEN),
        Status::Ready => ("ready", term::GREEN),
        Status::Frozen => ("frozen", term::CYAN),
        Status::Stopping => ("stopping", term::YELLOW),
        Status::Restarting => ("restarting", term::YELLOW),
        Status::Unknown => ("unknown", term::RED),
    }
}

/// The address under which other machines' packets reach it.
pub fn address(guest: &Summary) -> Option<String> {
    let plan = &guest.record.as_ref()?.network;
    match plan.mode {
        NetMode::Private => Some(plan.guest_v4.to_string()),
        NetMode::Host => Some("host".to_owned()),
        NetMode::None => None,
    }
}
