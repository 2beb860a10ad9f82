//! The system calls that Holm needs and rustix lacks.
//!
//! All unsafe code of the project lives in this crate; every function here is safe to call.
//! Without the feature `std` only [`bare`] remains, which needs neither the standard library nor a heap.
#![cfg_attr(not(feature = "std"), no_std)]
// Descriptors and flags cross the border to C as integers of other widths and signs.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_possible_truncation)]

pub mod bare;
#[cfg(feature = "std")]
pub mod bpf;
#[cfg(feature = "std")]
pub mod exec;
#[cfg(feature = "std")]
pub mod in_place;
#[cfg(feature = "std")]
pub mod in_vain;
#[cfg(feature = "std")]
pub mod mount;
#[cfg(feature = "std")]
pub mod packet;
#[cfg(feature = "std")]
pub mod probe;
#[cfg(feature = "std")]
pub mod process;
#[cfg(feature = "std")]
pub mod seccomp;
#[cfg(feature = "std")]
pub mod signal;
#[cfg(feature = "std")]
pub mod socket;
