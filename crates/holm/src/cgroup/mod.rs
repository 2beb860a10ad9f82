//! Control groups: where a guest's processes live, and what bounds them.
//!
//! ```text
//! <v2 root>/<group>/.monitor          the monitors of all guests, outside limits, freeze and kill
//! <v2 root>/<group>/NAME              the guest's limits and run record, owned by the host
//! <v2 root>/<group>/NAME/guest        owned by guest root, the root of its cgroup namespace
//! <v2 root>/<group>/NAME/guest/.holm  where `exec` and `enter` put their processes
//! ```
//!
//! On a hybrid host this tree lives in the unified hierarchy, and `<group>/NAME` is made as well in
//! those v1 hierarchies whose controller carries a limit of the guest, and in no other: moving a
//! process into a v1 cgroup costs time at every start.

mod check;
mod create;
mod error;
mod events;
mod files;
mod guest;
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
pub use usage::Usage;

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use {limits::parse_list, usage::field};

#[cfg(test)]
mod tests;
