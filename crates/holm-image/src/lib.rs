#![forbid(unsafe_code)]
//! The content of bases: reading what they are made from, and writing what they are stored as.
//!
//! ```text
//! image               an EROFS image in the composefs layout: all metadata, bodies up to 64 bytes
//! objects/ab/cdef...  a longer body, named by its fs-verity SHA-256 digest, shared by all images
//! ```
//!
//! A source ([`source`]) is read into a [`Tree`], which holds everything but the bodies of files,
//! and into [`Objects`], which hold these. Then the tree is written as an image. Nothing of a
//! source is ever unpacked on the host.
//!
//! Parsers of untrusted bytes ([`tar`], [`pax`], [`sparse`], [`acl`], [`xattrs`], [`elf`]) do no
//! I/O of their own, take slices or a reader, and never panic: fuzz targets call them.
//!
//! The engine of Holm does not link this crate, because composefs brings openssl and tokio.

pub mod acl;
pub mod elf;
mod error;
mod objects;
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
