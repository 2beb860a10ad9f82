//! `holm df`.

use clap::Args;
use holm::guest;
use holm::pool::{Name, Pool};
use holm::store::Usage;
use holm::volume;

use crate::context::Context;
use crate::table::{self, Cell};
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Df>(Group::Host, "df", "Show what guests, bases and volumes take on the disk")
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
        let volumes = pool.as_ref().map_or(Ok(Vec::new()), volumes)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Usage::new(&usage, &volumes))));
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
        let volumes = volumes.iter().map(|(name, used)| {
            let name = Cell::from(name);
            vec![Cell::from("volume"), name, size(*used), Cell::from("-"), Cell::from("-")]
        });
        let rows: Vec<Vec<Cell>> = guests.chain(bases).chain(volumes).collect();
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

/// What each volume takes, by name.
fn volumes(pool: &Pool) -> volume::Result<Vec<(Name, u64)>> {
    let names: Vec<Name> = volume::list(pool)?.into_iter().map(|(name, _)| name).collect();
    let used = volume::used(pool, &names)?;
    Ok(names
        .into_iter()
        .map(|name| {
            let bytes = used.get(&name).copied().unwrap_or(0);
            (name, bytes)
        })
        .collect())
}
