//! What guests are doing, for people and programs that ask.

mod list;
mod ready;
mod summary;

pub use list::{goes_on, list, names, oom_kills, summary};
pub use ready::wait_ready;
pub use summary::{Status, Summary};
