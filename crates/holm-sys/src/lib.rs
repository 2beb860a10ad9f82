//! The system calls that Holm needs and rustix lacks.
//!
//! All unsafe code of the project lives in this crate. Its users forbid unsafe code, so every
//! function here is safe to call, or takes a proof that its condition holds:
//!
//! - [`process::clone()`] needs a process with one thread, and no flag by which parent and child
//!   would share memory. It checks both, with one short system call.
//! - Closing or replacing descriptors that others own is for a new process that is about to execute
//!   a program or to end: it takes a [`child::ChildProcess`], which only the child of a clone is
//!   given.
//! - A descriptor that came through an exec must get one owner: [`bare::Inherited`], which only a
//!   program's entry is given, gives none that is close-on-exec, and makes those close-on-exec that
//!   it gives.
//! - A child that shares its parent's memory until it executes a program must do no harm there: the
//!   closure of [`bare::spawn`] holds only what can be copied and sent, and a guard page ends the
//!   child when its stack is too small.
//! - A function that replaces or ends this program leaves nothing of it that could be unsound. One
//!   that marks descriptors close-on-exec takes them from nobody.
//!
//! Without the feature `std` only [`bare`] remains, which needs neither the standard library nor a
//! heap.
#![cfg_attr(not(feature = "std"), no_std)]
// Descriptors and flags cross the border to C as integers of other widths and signs.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_possible_truncation)]

pub mod bare;
#[cfg(feature = "std")]
pub mod bpf;
#[cfg(feature = "std")]
pub mod child;
#[cfg(feature = "std")]
pub mod command_line;
#[cfg(feature = "std")]
pub mod exec;
#[cfg(feature = "std")]
pub mod file;
#[cfg(feature = "std")]
pub mod in_place;
#[cfg(feature = "std")]
pub mod interrupt;
#[cfg(feature = "std")]
pub mod loop_device;
#[cfg(feature = "std")]
pub mod mount;
#[cfg(feature = "std")]
pub mod packet;
#[cfg(feature = "std")]
pub mod process;
#[cfg(feature = "std")]
pub mod project;
#[cfg(feature = "std")]
pub mod seccomp;
#[cfg(feature = "std")]
pub mod signal;
#[cfg(feature = "std")]
pub mod socket;
#[cfg(feature = "std")]
pub mod try_syscall;
#[cfg(feature = "std")]
pub mod use_up;
