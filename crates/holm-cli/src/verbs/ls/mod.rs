//! `holm ls`.

mod columns;
mod filter;

use std::cmp::Ordering;
use std::fmt::Write;

use clap::Args;
use holm::cgroup::Figures;
use holm::guest::{self, Summary};

pub use columns::{COLUMNS, state_text};
use columns::{Column, USUAL, Value};
use filter::Filter;

use crate::context::Context;
use crate::table::{self, Cell};
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb = Verb::new::<Ls>(Group::Guests, "ls", "List the guests")
    .aliases(&["list"])
    .examples(
        "holm ls\n\
         holm ls --running\n\
         holm ls --filter state=ready --filter 'name=web-*'\n\
         holm ls --sort=-memory --columns name,memory,memory-limit\n\
         holm ls -q            # names only, for scripts\n\
         holm ls --json",
    )
    .more(column_list);

/// Arguments.
#[derive(Args)]
pub struct Ls {
    /// Only guests that run
    #[arg(long, short)]
    running: bool,
    /// Only guests with this in a column; * and ? stand for any characters. May be given more than
    /// once: of the filters for a column one must match
    #[arg(long, value_name = "COLUMN=PATTERN", value_parser = Filter::parse)]
    filter: Vec<Filter>,
    /// Sort by a column; -COLUMN sorts the other way round [default: name]
    #[arg(long, value_name = "[-]COLUMN", allow_hyphen_values = true, value_parser = Sort::parse)]
    sort: Option<Sort>,
    /// The columns, in this order [default: name,state,base,address,memory,pids,up]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = Column::find)]
    columns: Vec<&'static Column>,
    /// Accepted for other tools' sake: all guests are listed
    #[arg(long, short, hide = true)]
    all: bool,
}

impl Run for Ls {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look_if_any()?;
        let figures = if context.json { Figures::Traffic } else { self.figures() };
        let list = |pool| guest::list(pool, figures);
        let mut guests = pool.as_ref().map_or(Ok(Vec::new()), list)?;
        // The same for all of them.
        if let Some(what) = guests.iter().find_map(|guest| guest.ruleset_notice.as_ref()) {
            term::print_error(&format!("warning: {what}\n"));
        }
        let none = guests.is_empty();
        guests.retain(|guest| {
            (!self.running || guest.record.is_some()) && filter::listed(&self.filter, guest)
        });
        if let Some(sort) = self.sort {
            guests.sort_by(|one, other| sort.compare(one, other));
        }
        if context.json {
            let all = guests.iter().map(|guest| output::json(&output::Guest::from(guest)));
            term::print(&format!("{}\n", output::array(all)));
        } else if context.quiet {
            for guest in &guests {
                term::print(&format!("{}\n", guest.name));
            }
        } else {
            term::print(&text(&self.shown(), &guests, context));
            if none {
                term::print_error("there are no guests; holm launch NAME --base BASE makes one\n");
            }
        }
        Ok(0)
    }
}

impl Ls {
    /// The columns of the table.
    fn shown(&self) -> Vec<&'static Column> {
        if !self.columns.is_empty() {
            return self.columns.clone();
        }
        USUAL.iter().filter_map(|name| Column::find(name).ok()).collect()
    }

    /// What of the guests' usage is shown, filtered by or sorted by.
    fn figures(&self) -> Figures {
        let filtered = self.filter.iter().map(|filter| filter.column);
        let sorted = self.sort.iter().map(|sort| sort.column);
        let columns = self.shown().into_iter().chain(filtered).chain(sorted);
        columns.map(|column| column.figures).max().unwrap_or(Figures::Current)
    }
}

fn text(columns: &[&'static Column], guests: &[Summary], context: &Context) -> String {
    let head: Vec<String> = columns.iter().map(|c| c.name.to_uppercase()).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let row = |guest| columns.iter().map(|column| column.cell(guest)).collect();
    let rows: Vec<Vec<Cell>> = guests.iter().map(row).collect();
    table::table(&head, &rows, context.colour, context.width)
}

/// The order of the list.
#[derive(Clone, Copy)]
struct Sort {
    column: &'static Column,
    reversed: bool,
}

impl Sort {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, reversed) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        Ok(Self { column: Column::find(name)?, reversed })
    }

    /// Guests without a value are last both ways.
    fn compare(self, one: &Summary, other: &Summary) -> Ordering {
        let (one, other) = (self.column.value(one), self.column.value(other));
        let order = one.cmp(&other);
        let missing = one == Value::Missing || other == Value::Missing;
        if self.reversed && !missing { order.reverse() } else { order }
    }
}

/// All columns, for the long help.
fn column_list() -> String {
    COLUMNS.iter().fold(String::from("Columns:\n"), |mut all, column| {
        // Writing to a string cannot fail.
        let _ = writeln!(all, "  {:12}  {}", column.name, column.help);
        all
    })
}
