//! `holm base ls`.

use clap::Args;
use holm::store;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::table::{self, Cell};
use crate::term;
use crate::verb::{Outcome, Run};

const EXAMPLES: &str = "Examples:
  holm base ls
  holm base ls -q    # names only, for scripts";

/// No arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {}

impl Run for Ls {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look_if_any()?;
        let bases = pool.as_ref().map_or(Ok(Vec::new()), store::list)?;
        let lost = pool.as_ref().map_or(Ok(Vec::new()), store::damaged)?;
        for (_, error) in &lost {
            term::print_error(&format!("warning: {error}\n"));
        }
        for base in &bases {
            if let Some(damage) = &base.damage {
                term::print_error(&format!("warning: base {} is damaged: {damage}\n", base.name));
            }
        }
        if context.json {
            let all = bases.iter().map(|base| output::json(&output::Base::from(base)));
            // As where something was asked of several: an error takes the place of a document.
            let lost =
                lost.into_iter().map(|(name, error)| Failure::from(error).of(name.as_str()).json());
            term::print(&format!("{}\n", output::array(all.chain(lost))));
            return Ok(0);
        }
        if context.quiet {
            for base in &bases {
                term::print(&format!("{}\n", base.name));
            }
            return Ok(0);
        }
        let rows: Vec<Vec<Cell>> = bases
            .iter()
            .map(|b| {
                vec![
                    Cell::from(&b.name),
                    Cell::from(b.meta.os.as_deref().unwrap_or("-")),
                    Cell::from(b.meta.init_kind.as_deref().unwrap_or("-")),
                    Cell::from(b.meta.files),
                    Cell::from(term::size(b.meta.bytes)),
                    Cell::from(term::size(b.meta.own_bytes)),
                    Cell::from(term::ago(b.meta.created)),
                ]
            })
            .collect();
        let head = ["NAME", "SYSTEM", "INIT", "FILES", "SIZE", "OWN", "CREATED"];
        term::print(&table::table(&head, &rows, context.colour, context.width));
        if rows.is_empty() {
            term::print_error("there are no bases; holm base import NAME SOURCE makes one\n");
        }
        Ok(0)
    }
}
