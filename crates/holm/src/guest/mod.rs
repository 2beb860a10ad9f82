//! A guest's life: made, started, stopped, started again, removed.
//!
//! A guest is a folder `guests/NAME`; a running guest is also a control group, which carries what the
//! host has to know about it as an extended attribute ([`crate::record::RunRecord`]). So a host that loses /run, or a
//! monitor that is killed, loses nothing that the next command does not find again.

mod adopt;
mod autostart;
mod create;
mod ended;
mod error;
mod folder;
mod guard;
mod list;
mod parallel;
mod prepare;
mod process;
mod ready;
mod release;
mod repair;
mod run;
mod set;
mod signal;
mod start;
mod sweep;

pub use autostart::autostart;
pub use create::create;
pub use ended::ended;
pub use error::Error;
pub use folder::{config_path, configured, remove, rename};
pub use list::{Status, Summary, goes_on, list, names, oom_kills, summary};
pub use parallel::in_parallel;
pub use ready::wait_ready;
pub use release::release;
pub use repair::watched;
pub use run::{run, run_kept};
pub use set::{Changed, replace, set};
pub use signal::{freeze, kill, signal, stop, wait};
pub use start::start;
pub use sweep::sweep;

pub(crate) use repair::{repaired, running};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;
