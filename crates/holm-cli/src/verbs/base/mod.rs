//! `holm base`.

mod import;
mod inspect;
mod ls;
mod rm;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Base>(Group::Host, "base", "Import, list and remove bases")
    .aliases(&["bases"])
    .examples(
        "holm base import debian13 debootstrap:trixie+openssh-server,nginx\n\
         holm base import busybox busybox\n\
         holm base import mine ./rootfs.tar.zst\n\
         ssh host tar -c -C / --one-file-system . | holm base import theirs -\n\
         holm base ls",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Base {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Debug, Subcommand)]
enum Verbs {
    /// Make a base from Debian packages, a directory or a tar
    #[command(visible_alias = "add", aliases = ["pull", "load"])]
    Import(import::Import),
    /// List the bases
    #[command(alias = "list")]
    Ls(ls::Ls),
    /// Show all about a base
    #[command(aliases = ["show", "info"])]
    Inspect(inspect::Inspect),
    /// Remove bases that no guest uses
    #[command(aliases = ["delete", "remove"])]
    Rm(rm::Rm),
}

impl Run for Base {
    fn run(self, context: &Context) -> Outcome {
        match self.verb {
            Verbs::Import(verb) => verb.run(context),
            Verbs::Ls(verb) => verb.run(context),
            Verbs::Inspect(verb) => verb.run(context),
            Verbs::Rm(verb) => verb.run(context),
        }
    }
}
