//! `holm volume inspect`.

use clap::Args;
use holm::pool::Name;
use holm::volume::{self, Files};

use crate::context::Context;
use crate::verb::{Outcome, Run};
use crate::{output, table, term};

const EXAMPLES: &str = "Examples:
  holm volume inspect pg
  holm volume inspect pg --json";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Inspect {
    /// The volume
    name: String,
}

impl Run for Inspect {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look()?;
        let name = Name::new(&self.name)?;
        let volume = volume::load(&pool, &name)?;
        let users = volume::users(&pool, &name)?;
        let used = volume::used(&pool, std::slice::from_ref(&name))?.get(&name).copied();
        if context.json {
            let document = output::json(&output::Volume::new(&volume, &users, used));
            term::print(&format!("{document}\n"));
            return Ok(0);
        }
        let meta = &volume.meta;
        let list = |guests: &[String]| {
            if guests.is_empty() { "none".to_owned() } else { guests.join(", ") }
        };
        let origin = match (&meta.guest, &meta.target) {
            (Some(guest), Some(target)) => format!("{target} of guest {guest}"),
            _ => "empty".to_owned(),
        };
        let size = |bytes: Option<u64>| bytes.map_or("none".to_owned(), term::size);
        let files = match &volume.files {
            Files::Directory(data) => ("data", data.display().to_string()),
            Files::Image(image) => ("disk image", image.display().to_string()),
        };
        let lines = [
            ("name", name.to_string()),
            ("created", term::ago(meta.created)),
            ("began as", origin),
            ("used", used.map_or("not known".to_owned(), term::size)),
            ("limit", size(meta.size)),
            ("guests", list(&users.named)),
            ("running", list(&users.running)),
            files,
        ];
        term::print(&table::list(&lines, context.colour));
        Ok(0)
    }
}
