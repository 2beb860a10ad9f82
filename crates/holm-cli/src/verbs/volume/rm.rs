//! `holm volume rm`.

use clap::Args;
use holm::pool::Name;
use holm::volume;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::several::{self, Answer, Answers};
use crate::verb::{Outcome, Run};

const EXAMPLES: &str = "Examples:
  holm volume rm pg
  holm volume rm old older oldest";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Rm {
    /// The volumes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Run for Rm {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let remove =
            |name: &str| -> Result<(), Failure> { Ok(volume::remove(&pool, &Name::new(name)?)?) };
        if let [name] = self.names.as_slice() {
            remove(name).map_err(|failure| failure.of(name))?;
            several::report(context, "", &document(name));
            return Ok(0);
        }
        let mut answers = Answers::new(context);
        for name in &self.names {
            let removed = remove(name).map(|()| (String::new(), document(name)));
            answers.add(name, Ok(Answer::new(context, name, removed)));
        }
        Ok(answers.finish())
    }
}

fn document(name: &str) -> String {
    output::json(&output::Named { name: name.to_owned() })
}
