//! Reading objects and images, which holm-import does.

use super::found::{Damage, Line, Looked};
use crate::pool::Pool;
use crate::store::error::Error;
use crate::store::import::Progress;
use crate::store::program;

/// Has holm-import read all objects and images, or `only` these objects.
pub(super) fn check(
    pool: &Pool,
    only: &[&str],
    progress: &mut dyn FnMut(Progress),
) -> Result<(Looked, Vec<Damage>), Error> {
    let mut command = program::command(pool)?;
    command.arg("--check").arg("--").args(only);
    let (mut looked, mut found) = (Looked::default(), Vec::new());
    let outcome = program::run(command, |line| match serde_json::from_str(line) {
        Ok(Line::Damage(one)) => found.push(one),
        Ok(Line::Looked(all)) => looked = all,
        Ok(Line::Progress(step)) => progress(step),
        _ => {}
    })?;
    outcome.map_err(|message| Error::Fsck { message })?;
    Ok((looked, found))
}
