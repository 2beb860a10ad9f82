//! `holm rebuild`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::output;
use crate::several;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Rebuild>(
    Group::Guests,
    "rebuild",
    "Replace a stopped guest's root by an empty one on its base",
)
.examples(
    "holm rebuild web\n\
     holm rebuild web --base debian13\n\
     holm rebuild --force web     # also if it runs\n\n\
     What the guest has written into its root is removed: packages, files in /etc and /home, its\n\
     SSH host keys (new ones are made). Its settings, volumes, addresses, ids and machine id stay.",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Rebuild {
    /// The guest
    name: String,
    /// Another base for it
    #[arg(long, short)]
    base: Option<String>,
    /// Kill it if it runs
    #[arg(long, short)]
    force: bool,
}

impl Run for Rebuild {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let base = self.base.as_deref().map(Name::new).transpose()?;
        let pool = context.pool()?;
        let guest = Guest::new(&pool, &name);
        if self.force {
            // Killing it first would harm a guest that then must not be changed.
            if guest::is_protected(&guest)? {
                return Err(guest::Error::Protected(name).into());
            }
            if let Some(base) = &base {
                holm::store::load(&pool, base)?;
            }
            match guest::kill(&guest) {
                Ok(()) | Err(guest::Error::NotRunning(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let base = guest::rebuild(&guest, base.as_ref())?;
        let document = output::Rebuilt { name: name.to_string(), base: base.to_string() };
        several::report(context, "", &output::json(&document));
        Ok(0)
    }
}
