//! `holm df`.

use clap::Args;
use holm::guest;
use holm::store::Usage;

use crate::context::Context;
use crate::table::{self, Cell};
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Df>(Group::Host, "df", "Show what guests and bases take on the disk")
        .aliases(&["du", "usage"])
        .examples(
            "holm df\n\
             holm df --json | jq .saved_bytes\n\n\
             OWN is what is stored for it alone, SHARED the files that it has in common with\n\
             others since a unification, EXCLUSIVE what of those nothing else has.",
        );

/// No arguments.
#[derive(Debug, Args)]
pub struct Df {}

impl Run for Df {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look_if_any()?;
        let usage = pool.as_ref().map_or(Ok(Usage::default()), guest::df)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Usage::from(&usage))));
            return Ok(0);
        }
        let size = |bytes: u64| Cell::from(term::size(bytes));
        let guests = usage.guests.iter().map(|guest| {
            let name = Cell::from(&guest.name);
            vec![
                Cell::from("guest"),
                name,
                size(guest.own),
                size(guest.shared),
                size(guest.exclusive),
            ]
        });
        let bases = usage.bases.iter().map(|base| {
            let name = Cell::from(&base.name);
            vec![Cell::from("base"), name, Cell::from("-"), size(base.size), size(base.exclusive)]
        });
        let rows: Vec<Vec<Cell>> = guests.chain(bases).collect();
        let head = ["", "NAME", "OWN", "SHARED", "EXCLUSIVE"];
        term::print(&table::table(&head, &rows, context.colour, context.width));
        if !context.quiet {
            let (count, bytes) = usage.objects;
            let (bytes, saved) = (term::size(bytes), term::size(usage.saved));
            term::print(&format!(
                "{count} shared files of {bytes}; separate copies of them would take {saved} more\n"
            ));
        }
        Ok(0)
    }
}
