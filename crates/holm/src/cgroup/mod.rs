//! The cgroups of guests, and their limits.
//!
//! ```text
//! <v2 root>/<pool>/.monitor          the monitors of all guests, outside of their limits
//! <v2 root>/<pool>/NAME              the guest's limits and run record, owned by the host
//! <v2 root>/<pool>/NAME/guest        owned by guest root, the root of its cgroup namespace
//! <v2 root>/<pool>/NAME/guest/.holm  the leaf for the processes of `exec` and `enter`
//! ```
//!
//! `<pool>` is `holm` or `holm-N`. On a hybrid host this tree is in the unified hierarchy, and
//! `<pool>/NAME` is also made in those v1 hierarchies whose controllers carry a limit of the guest.
//! It is made in no others, because moving a process into a v1 cgroup costs time at every start.

mod check;
mod create;
mod error;
mod events;
mod files;
mod guest;
mod huge_pages;
mod layout;
mod limits;
mod pool;
mod remove;
mod set;
mod usage;
mod v1;
mod walk;

pub use error::{Error, Result};
pub use guest::GuestCgroup;
pub use layout::{Controller, Layout};
pub use limits::Limits;
pub use pool::PoolCgroup;
pub use usage::{Figures, Usage};

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use {limits::parse_list, usage::field};

#[cfg(test)]
mod tests;
