//! `guest.toml`, the settings of a guest: types, units and checks.
//!
//! [`parse`] reads a file, [`edit_text`] changes one and keeps its comments, [`keys`] lists the
//! keys it can have, and [`effective`] returns every value and where it comes from.

mod change;
mod check;
mod choices;
mod direct;
mod edit;
mod effective;
mod entry;
mod error;
mod input;
mod key;
mod keys;
mod load;
mod nearest;
mod parse;
mod table;
mod typed;
mod types;
mod units;
mod values;

#[cfg(test)]
mod tests;

pub use change::{Change, Op};
pub use direct::from_changes;
pub use edit::edit_text;
pub use effective::{Effective, Source, changed, effective};
pub use error::Error;
pub use key::{Effect, Key, Kind};
pub use keys::{find, keys, unknown};
pub use load::load;
pub use nearest::nearest;
pub use parse::parse;
pub use types::*;
pub use units::{duration, rate, show_duration, show_rate, size};
pub(crate) use values::same_network;
pub use values::{access_rule, disk_size, signals};
