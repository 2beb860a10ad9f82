#![forbid(unsafe_code)]
//! Importing bases: reading sources, and writing metadata images and objects.
//!
//! ```text
//! image               an EROFS image in the composefs layout: all metadata, bodies up to 64 bytes
//! objects/ab/cdef...  a longer body, named by its fs-verity SHA-256 digest, shared by all images
//! ```
//!
//! A [`source`] is read into a [`Tree`], which has all metadata, and into [`Objects`], which have
//! the bodies of files. Then the tree is written as an image. No file of a source is ever unpacked
//! on the host.
//!
//! The parsers of untrusted bytes ([`tar`], [`pax`], [`sparse`], [`acl`], [`xattrs`], [`elf`]) do
//! no I/O of their own: they take slices or a reader. They must never panic, which is fuzzed.
//!
//! The engine of Holm does not link this crate, because composefs brings openssl and tokio.

pub mod acl;
mod bodies;
pub mod check;
pub mod elf;
mod error;
pub mod layer;
mod metadata;
mod objects;
mod parallel;
pub mod pax;
pub mod source;
pub mod sparse;
mod system;
pub mod tar;
mod tree;
pub mod verity;
pub mod xattrs;

pub use error::{Error, Result};
pub use objects::Objects;
pub use system::System;
pub use tree::Tree;
