//! Writing file bodies into the object store.
//!
//! ```text
//! STORE/ab/cdef...     an object
//! STAGING/body-N       a body that is being written
//! STAGING/abcdef...    a complete body that the store does not have yet
//! ```
//!
//! Several threads write bodies at once. New ones are collected in the staging directory, and
//! renamed into the store when all of them are on disk. So the objects in the store are always
//! complete, even after a power failure, and a killed import leaves none behind.
//!
//! Where the filesystem has fs-verity, it is enabled for new objects: what the disk changes later
//! gives an error instead of wrong bytes (`docs/decisions/0031-fs-verity.md`).

mod body;
mod digest;
mod read;
mod store;

pub(crate) use body::Body;
pub(crate) use digest::digest;
pub(crate) use read::copy_body;
pub use store::Objects;
pub(crate) use store::stored;
