//! Storing the bodies of a source once more, for a base that has lost some.

use holm::pool::Pool;
use holm::store::{Source, Staging};
use holm_image::{Objects, Tree};

use crate::error::Result;
use crate::import::{install, read, sync};
use crate::report::Report;

/// Reads the source. What the store has damaged, or does not have, is stored; no base is made.
pub fn restore(pool: &Pool, source: &Source, mirror: Option<&str>) -> Result<()> {
    let staging = Staging::new(pool)?;
    let mut report = Report::new();
    let installed = install(source, mirror, &staging, &mut report)?;
    let objects = Objects::open(pool.objects_dir(), staging.dir().join("new"))?;
    let mut tree = Tree::new();
    read(source, installed.as_deref(), &mut tree, &objects, &mut report)?;
    sync(staging.dir())?;
    objects.commit()?;
    sync(staging.dir())
}
