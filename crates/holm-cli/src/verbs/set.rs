//! `holm set`.

use clap::Args;
use holm::config::{self, Change, Effect};
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{settings, table};

pub const VERB: Verb = Verb::new::<Set>(Group::Settings, "set", "Change settings of a guest")
    .examples(
        "holm set web memory.limit=512M cpu.cap=150%\n\
         holm set web net.publish+=8080:80       # one more item\n\
         holm set web net.publish-=8080:80       # one less\n\
         holm set web env.LANG=C.UTF-8\n\
         holm set web 'command=sh -c \"echo hello; sleep 10\"'        # split as a shell would\n\
         holm set web 'command=[\"sh\", \"-c\", \"echo hello; sleep 10\"]'   # the same\n\
         holm unset web memory.limit             # back to the default",
    )
    .more(key_list);

/// Arguments.
#[derive(Debug, Args)]
pub struct Set {
    /// The guest
    name: String,
    /// KEY=VALUE, KEY+=ITEM or KEY-=ITEM
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
}

impl Run for Set {
    fn run(self, context: &Context) -> Outcome {
        // Wrong arguments are an error before a Holm root is opened.
        let wanted =
            self.changes.iter().map(|c| Change::parse(c)).collect::<Result<Vec<_>, _>>()?;
        let guest = Name::new(&self.name)?;
        let changed = guest::set(&Guest::new(&context.pool()?, &guest), &wanted)?;
        settings::report(context, &guest, &changed);
        Ok(0)
    }
}

/// All keys, for the help.
pub fn key_list() -> String {
    let row = |key: &config::Key| {
        let effect = match key.effect {
            Effect::Live => "at once",
            Effect::NextStart => "next start",
        };
        vec![key.name.into(), effect.into(), key.help.into()]
    };
    let rows: Vec<Vec<table::Cell>> = config::keys().iter().map(row).collect();
    table::table(&["Keys:", "effect", ""], &rows, false, None)
}
