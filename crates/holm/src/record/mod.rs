//! What is stored about a run: plain data that the rooms above read and write.
//!
//! Two texts hold it, both JSON: the extended attribute `trusted.holm` of a running guest's cgroup
//! ([`RunRecord`]), and `guests/NAME/last` ([`LastRun`]). A guest may have been started, or have
//! ended, under another version of Holm: so stored names never change, and fields that were added
//! later have a default.

mod access;
mod clock;
mod ids;
mod last;
mod network;
pub(crate) mod ports;
mod run;

pub use access::Access;
pub(crate) use clock::{now, since_boot};
pub(crate) use ids::NESTED_RANGES;
pub use ids::{Ids, RANGE};
pub use last::{LONGEST_WAIT, LastRun, PendingRestart};
pub(crate) use network::{FIRST_HOST_INDEX, host_index};
pub use network::{Lan, Network, Shaping};
pub use ports::shown as shown_ports;
pub use run::RunRecord;
