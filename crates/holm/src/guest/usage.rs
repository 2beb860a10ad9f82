//! What guests take on the disk.

use super::error::Result;
use super::handle::Guest;
use crate::pool::Pool;
use crate::store::{self, Usage};

/// What the guests and bases of a Holm root take on the disk.
pub fn df(pool: &Pool) -> Result<Usage> {
    let base = |name: &_| Guest::new(pool, name).config().ok().map(|(_, config)| config.base);
    Ok(store::df(pool, base)?)
}
