//! `holm volume ls`.

use clap::Args;
use holm::volume;

use crate::context::Context;
use crate::failure::Failure;
use crate::table::{self, Cell};
use crate::verb::{Outcome, Run};
use crate::{output, term};

const EXAMPLES: &str = "Examples:
  holm volume ls
  holm volume ls -q    # names only, for scripts

USED is shown for those with a limit; holm df looks at the files of the others too.";

/// No arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {}

impl Run for Ls {
    fn run(self, context: &Context) -> Outcome {
        let Some(pool) = context.look_if_any()? else {
            if context.json {
                term::print(&format!("{}\n", output::array(Vec::new())));
            }
            return Ok(0);
        };
        let (mut documents, mut rows) = (Vec::new(), Vec::new());
        for (name, loaded) in volume::list(&pool)? {
            if context.quiet && !context.json {
                term::print(&format!("{name}\n"));
                continue;
            }
            match loaded {
                Ok(volume) => {
                    let users = volume::users(&pool, &name)?;
                    let used = volume.used(&pool)?;
                    documents.push(output::json(&output::Volume::new(&volume, &users, used)));
                    rows.push(vec![
                        Cell::from(&name),
                        Cell::from(used.map_or("-".to_owned(), term::size)),
                        Cell::from(volume.meta.size.map_or("-".to_owned(), term::size)),
                        Cell::from(if users.all().is_empty() {
                            "-".to_owned()
                        } else {
                            users.all().join(", ")
                        }),
                        Cell::from(term::ago(volume.meta.created)),
                    ]);
                }
                Err(error) => {
                    term::print_error(&format!("warning: {error}\n"));
                    documents.push(Failure::from(error).of(name.as_str()).json());
                }
            }
        }
        if context.json {
            term::print(&format!("{}\n", output::array(documents)));
        } else if !context.quiet {
            let head = ["NAME", "USED", "LIMIT", "GUESTS", "CREATED"];
            term::print(&table::table(&head, &rows, context.colour, context.width));
            if rows.is_empty() {
                term::print_error("there are no volumes; holm volume create NAME makes one\n");
            }
        }
        Ok(0)
    }
}
