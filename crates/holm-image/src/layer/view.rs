//! What lies below a directory of the upper directory: the guest's image, if it has one, over the
//! base.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use composefs::fsverity::Sha256HashValue;
use composefs::tree::{Directory, FileSystem, Inode, Leaf};

/// The directory of a guest's image that is the layer. Its root has an attribute, and whiteouts,
/// that would hide the base.
pub const TREE: &str = "tree";

pub type Dir = Directory<Sha256HashValue>;
pub type Image = FileSystem<Sha256HashValue>;

/// The layers below.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    pub image: Option<&'a Image>,
    pub base: &'a Image,
}

/// One directory, as the layers below have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    pub image: Option<&'a Dir>,
    pub base: Option<&'a Dir>,
}

/// What a name leads to.
#[derive(Debug)]
pub enum Below<'a> {
    Nothing,
    Leaf(&'a Leaf<Sha256HashValue>),
    Dir(View<'a>),
}

impl<'a> Layers<'a> {
    /// The root.
    pub fn root(&self) -> View<'a> {
        let tree = |image: &'a Image| image.root.get_directory(OsStr::new(TREE)).ok();
        View { image: self.image.and_then(tree), base: Some(&self.base.root) }
    }

    /// What a name in a directory leads to. A file hides whatever is below it.
    pub fn look_up(&self, view: View<'a>, name: &OsStr) -> Below<'a> {
        let base = match view.base.and_then(|dir| dir.lookup(name)) {
            None => Below::Nothing,
            Some(Inode::Leaf(id, _)) => Below::Leaf(self.base.leaf(*id)),
            Some(Inode::Directory(dir)) => Below::Dir(View { image: None, base: Some(dir) }),
        };
        match (view.image.and_then(|dir| dir.lookup(name)), self.image) {
            (Some(Inode::Leaf(id, _)), Some(image)) => Below::Leaf(image.leaf(*id)),
            (Some(Inode::Directory(dir)), _) => {
                let base = if let Below::Dir(view) = base { view.base } else { None };
                Below::Dir(View { image: Some(dir), base })
            }
            _ => base,
        }
    }

    /// What a redirect leads to: a path from the root, or another name in the same directory.
    pub fn redirected(&self, view: View<'a>, redirect: &[u8]) -> Below<'a> {
        let start = if redirect.starts_with(b"/") { self.root() } else { view };
        let mut at = Below::Dir(start);
        for name in redirect.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            at = match at {
                Below::Dir(view) => self.look_up(view, OsStr::from_bytes(name)),
                _ => return Below::Nothing,
            };
        }
        at
    }
}

impl View<'_> {
    /// Whether the base's part of it is this directory.
    pub fn is_over(&self, base: Option<&Dir>) -> bool {
        match (self.base, base) {
            (Some(a), Some(b)) => ptr::eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}
