//! `holm base rm`.

use clap::Args;
use holm::pool::Name;
use holm::store;
use serde_json::json;

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::verb::{Outcome, Run};
use crate::{several, term};

const EXAMPLES: &str = "Examples:
  holm base rm old
  holm base rm old older oldest";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Rm {
    /// The bases
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Run for Rm {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let remove =
            |name: &str| -> Result<(), Failure> { Ok(store::remove(&pool, &Name::new(name)?)?) };
        if let [name] = self.names.as_slice() {
            remove(name)?;
            several::report(context, "", &json!({ "name": name }));
            return Ok(0);
        }
        let mut worst = 0;
        let mut all = Vec::new();
        for name in &self.names {
            let Err(failure) = remove(name) else {
                all.push(json!({ "name": name }));
                continue;
            };
            worst = FAILED;
            if !context.json {
                term::print_error(&failure.text(context.colour_errors));
            }
            all.push(several::failed(name, &failure));
        }
        several::report_all(context, all);
        Ok(worst)
    }
}
