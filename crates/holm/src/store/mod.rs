//! Bases and the objects they share.
//!
//! ```text
//! objects/
//!   ab/cdef...    the body of a file, named by its fs-verity SHA-256 digest
//!   .quarantine/  objects that were found damaged
//!   .gc           a collection of unused objects is due; .gc-running: one runs
//! bases/
//!   NAME/
//!     image       EROFS in the composefs layout: all metadata; bodies are objects
//!     objects     the list of these objects
//!     base.toml   its source, and what it contains
//!   .new-PID-N/   a base that is being imported
//!   .old-PID-N/   a base that is being removed
//! ```
//!
//! Locks: an import locks its `.new-PID-N` exclusively and `objects` shared. A [`Pin`] locks a base
//! shared, a removal locks it exclusively. `bases` is locked while an entry of it is made or
//! renamed.

mod base;
mod clean;
mod damage;
mod df;
mod directory;
mod error;
mod fsck;
mod gc;
mod import;
mod meta;
mod objects;
mod pin;
mod program;
mod remove;
mod source;
mod staging;
mod unify;
mod users;

pub use base::{Base, beyond, damaged, list, load};
pub use clean::gc;
pub use df::{BaseUsage, GuestUsage, Usage, df};
pub use error::Error;
pub use fsck::{Damage, Fsck, FsckOptions, Looked, Problem, Subject, fsck};
pub use gc::{Collected, request};
pub use import::{ImportOptions, Phase, Progress, Remarks, import};
pub use meta::BaseMeta;
pub use objects::Object;
pub use pin::{Pin, pin, pin_all};
pub use remove::remove;
pub use source::Source;
pub use staging::Staging;
pub use unify::{Found, Switched, UnifyOptions, prepare, switch};
