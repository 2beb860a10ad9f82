//! Reading objects and images, which holm-import does.

use super::found::{Damage, Line, Looked};
use crate::pool::Pool;
use crate::store::error::Error;
use crate::store::import::Progress;
use crate::store::program;

/// What is read.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    /// All objects and images.
    Everything,
    /// Objects, by their paths below `objects`.
    Objects(&'a [&'a str]),
}

/// Has holm-import read objects and images.
pub(super) fn check(
    pool: &Pool,
    what: What,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Looked, Vec<Damage>), Error> {
    let (mut looked, mut found) = (Looked::default(), Vec::new());
    // Without arguments holm-import reads everything.
    let objects = match what {
        What::Everything => &[],
        What::Objects([]) => return Ok((looked, found)),
        What::Objects(paths) => paths,
    };
    let mut command = program::command(pool)?;
    command.arg("--check").arg("--").args(objects);
    let outcome = program::run(command, |line| match serde_json::from_str(line) {
        Ok(Line::Damage(one)) => found.push(one),
        Ok(Line::Looked(all)) => looked = all,
        Ok(Line::Progress(step)) => progress(step),
        _ => {}
    })?;
    outcome.map_err(|message| Error::Fsck { message })?;
    Ok((looked, found))
}
