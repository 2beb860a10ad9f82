//! `holm base inspect`.

use clap::Args;
use holm::pool::Name;
use holm::store;

use crate::context::Context;
use crate::verb::{Outcome, Run};
use crate::{output, table, term};

const EXAMPLES: &str = "Examples:
  holm base inspect debian13
  holm base inspect debian13 --json";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Inspect {
    /// The base
    name: String,
}

impl Run for Inspect {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look()?;
        let wanted = Name::new(&self.name)?;
        store::load(&pool, &wanted)?;
        // The list knows how much of it no other base has.
        let Some(base) = store::list(&pool)?.into_iter().find(|b| b.name == wanted) else {
            store::load(&pool, &wanted)?;
            return Ok(0);
        };
        let meta = &base.meta;
        if context.json {
            let output = output::json(&output::Base::from(&base));
            term::print(&format!("{output}\n"));
            return Ok(0);
        }
        let none = || "none".to_owned();
        let mut lines = vec![
            ("name", base.name.to_string()),
            ("system", meta.os.clone().unwrap_or_else(none)),
            ("machine", meta.arch.clone()),
            ("init", meta.init_kind.clone().unwrap_or_else(none)),
            ("init path", meta.system_init.clone().unwrap_or_else(none)),
            ("source", meta.source.clone()),
            ("created", term::ago(meta.created)),
            ("files", meta.files.to_string()),
            ("size", term::size(meta.bytes)),
            ("of its own", term::size(meta.own_bytes)),
            ("image", base.image.display().to_string()),
        ];
        lines.extend(base.damage.clone().map(|damage| ("damage", damage)));
        term::print(&table::list(&lines, context.colour));
        Ok(0)
    }
}
