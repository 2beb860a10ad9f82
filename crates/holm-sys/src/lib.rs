//! The system calls that Holm needs and rustix lacks.
//!
//! All unsafe code of the project lives in this crate; every function here is safe to call.

// Descriptors and flags cross the border to C as integers of other widths and signs.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_possible_truncation)]

pub mod mount;
pub mod process;
