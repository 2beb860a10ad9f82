//! What `ls` and `status` show.

mod list;
mod ready;
mod summary;

pub use list::{is_active, list, names, oom_kills, summary};
pub use ready::wait_ready;
pub use summary::{Readiness, Status, Summary};
