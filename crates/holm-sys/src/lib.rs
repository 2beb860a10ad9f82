//! The system calls that Holm needs and rustix lacks.
//!
//! All unsafe code of the project lives in this crate. Its users forbid unsafe code, so every function
//! here is safe to call, or can only be called by who has shown that its condition holds:
//!
//! - Cloning a process needs one thread, and no flag by which parent and child share memory:
//!   [`process::clone()`] looks, by one short system call.
//! - Closing or replacing descriptors under their owners is for a new process that is about to execute
//!   a program or to end: [`child::ChildProcess`], which only the child of a clone is given.
//! - Descriptors that came through an exec have an owner once: [`bare::Inherited`], which only a
//!   program's entry is given, knows one that was taken by its close-on-exec flag.
//! - A child that shares its parent's memory until it executes a program can do no harm to it: what
//!   [`bare::spawn`] runs takes along only what can be copied and shared, and a guard page ends it
//!   when its stack is too small.
//! - What replaces this program, or ends it, leaves nothing of it that could be unsound. What marks
//!   descriptors close-on-exec takes them from nobody.
//!
//! Without the feature `std` only [`bare`] remains, which needs neither the standard library nor a heap.
#![cfg_attr(not(feature = "std"), no_std)]
// Descriptors and flags cross the border to C as integers of other widths and signs.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_possible_truncation)]

pub mod bare;
#[cfg(feature = "std")]
pub mod bpf;
#[cfg(feature = "std")]
pub mod child;
#[cfg(feature = "std")]
pub mod exec;
#[cfg(feature = "std")]
pub mod in_place;
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
#[cfg(feature = "std")]
pub mod try_syscall;
