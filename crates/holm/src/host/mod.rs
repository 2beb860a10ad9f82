//! What this kernel and this machine can do: the probes behind `holm doctor`, and behind the errors
//! of other verbs.
//!
//! Features are tried, not guessed from the kernel's version: distributions backport, and machines
//! are built without parts. [`FEATURES`] is the table of them.

mod access;
mod cgroups;
mod child;
mod core_dumps;
mod disk;
mod features;
mod finding;
mod ids;
mod kernel;
mod layers;
mod machine;
mod network;
mod probe;
mod process;
mod scratch;
mod tools;

pub use features::{FEATURES, FILESYSTEM, Feature, STORAGE};
pub use finding::{Finding, State};
pub use probe::{forced_missing, missing_requirement, probe, probe_all, unsupported_root};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use {ids::overlapping, process::own_cgroup};

#[cfg(test)]
mod tests;
