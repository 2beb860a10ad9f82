//! Who had which address and port at a time: what an operator asks who is told of abuse
//! (`PlanetLab` answered it by a log of all flows).
//!
//! ```text
//! ROOT/flows/
//!   runs runs.1             each begin, change and end of a run of a guest: a line of JSON
//!   connections/NAME/       what a private guest with `net.flows` has opened, one by one:
//!     log log.1             see [`holm_proto::flow`]
//! ```
//!
//! A native guest has all ports of its addresses, and a published port is one guest's: of these
//! the runs tell everything. Only who shares the host's address takes a record for each connection.
//!
//! Both are bounded: at 4 MiB a file becomes that with `.1`, and the one that had this name is
//! gone. They stay when a guest is removed; [`remove_old`] removes what is older than
//! [`KEPT_DAYS`].

mod connections;
mod error;
mod find;
mod old;
mod runs;

use std::path::PathBuf;

pub use connections::directory;
pub use error::Error;
pub use find::{Flow, Kind, Query, find};
pub use old::{KEPT_DAYS, remove_old};
pub use runs::{begin, end};

use crate::pool::Pool;

fn base(pool: &Pool) -> PathBuf {
    pool.root().join("flows")
}
