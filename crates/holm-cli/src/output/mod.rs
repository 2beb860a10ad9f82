//! What `--json` prints: types of its own, so that the engine's may change. docs/json.md is made
//! from them.

mod action;
mod base;
mod checked;
mod doctor;
mod error;
mod flow;
pub mod guest;
pub mod health;
mod lan;
mod last_run;
mod limits;
mod line;
mod settings;
#[cfg(test)]
mod tests;
mod time;
mod traffic;
mod unified;
mod usage;
mod volume;

use serde::Serialize;

pub use action::{
    Killed, Named, Ready, Rebuilt, Released, RemovedGuest, Renamed, Signalled, Waited,
};
pub use base::Base;
pub use checked::Checked;
pub use doctor::Report;
pub use error::{Error, Failed, Place};
pub use flow::{Flow, protocol_name};
pub use guest::Guest;
pub use lan::ethernet;
pub use line::Line;
pub use settings::{Changed, OneSetting, Setting, Settings};
pub use time::Time;
pub use traffic::Stat;
pub use unified::Unified;
pub use usage::{Collected, Usage};
pub use volume::Volume;

/// The version of all documents: another when a key is removed or gets another type or meaning, the
/// same when one is added.
pub const VERSION: u32 = 1;

/// A document with its version.
#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// A document as JSON, on one line.
pub fn json(body: &impl Serialize) -> String {
    // Every type here serializes: keys are strings, and none of them writes by itself.
    serde_json::to_string(&Document { version: VERSION, body }).unwrap_or_default()
}

/// Several documents as an array.
pub fn array(documents: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", documents.into_iter().collect::<Vec<_>>().join(","))
}
