//! Reconciliation: comparing what is recorded with what the kernel shows, and repairing the
//! difference.
//!
//! A difference is left by a process of Holm that was killed. Every command that looks at a guest
//! or changes one reconciles it first, under the guest's lock.

mod adopt;
mod clean_up;
mod connections;
mod in_effect;
mod monitor_title;
mod repair;
mod ruleset;
mod sweep;

/// How many seconds a start may take. What is younger than this and has no owner may belong to one.
const START_MAX: u64 = 10;

pub(super) use clean_up::{clean_up_with, remove_unrecorded};
pub(super) use connections::bound_connections;
pub(super) use in_effect::restore;
pub(super) use monitor_title::is_monitor;
pub use repair::ensure_monitor;
pub(super) use repair::reconcile;
pub(super) use ruleset::restore_ruleset;
pub use sweep::sweep;
pub(super) use sweep::{is_attended, release_unowned, sweep_one};
