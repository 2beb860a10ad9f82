//! What is stored about a run: plain data, which everything above reads and writes.
//!
//! Two texts hold it, both JSON: the extended attribute `trusted.holm` of a running guest's control group
//! ([`RunRecord`]), and `guests/NAME/last` ([`LastRun`]). A guest may have been started, or have ended, under another
//! version of Holm: so the stored names stay, and what is newer than the first version has a default.

mod clock;
mod ids;
mod last;
mod network;
pub(crate) mod ports;
mod run;

pub(crate) use clock::{now, since_boot};
pub(crate) use ids::NESTED_RANGES;
pub use ids::{Ids, RANGE};
pub use last::{LONGEST_WAIT, LastRun, PendingRestart};
pub use network::Network;
pub use run::RunRecord;
