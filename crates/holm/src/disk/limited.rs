//! The limits of a guest's private layer.

use std::fs;
use std::path::{Path, PathBuf};

use super::layer::NEW;
use super::limit::image::{self, Fitted};
use super::limit::{self, Backend, Limits};
use super::{Error, Layer};
use crate::Failed;
use crate::config::{Disk, DiskKind};
use crate::failed::{is_there, read_if_there, unless_gone};
use crate::pool::{Name, Pool};
use crate::rootfs::{UPPER, WORK};
use crate::step;

/// Records how a guest's private layer is limited. A layer without limits has no such file.
const LIMITED: &str = "limited";
/// The image, in the guest's directory.
const IMAGE: &str = "disk.img";

/// What the file `limited` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limited {
    /// The layer is an image.
    Image,
    /// The files of the layer have this project id, or are getting it.
    Project(u32),
}

/// Where the private layer of a guest is, which is locked, with the project id that its files can
/// have.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    pool: &'a Pool,
    /// `guests/NAME`.
    directory: PathBuf,
    project: u32,
}

impl<'a> Place<'a> {
    /// That of the guest `name`, whose id range begins at `project`.
    pub fn new(pool: &'a Pool, name: &Name, project: u32) -> Self {
        Self { pool, directory: pool.guest_dir(name), project }
    }

    /// The private layer as it is.
    pub fn look(&self, disk: &Disk) -> Result<Layer, Error> {
        Ok(match (disk.kind, self.limited()?) {
            (DiskKind::Memory, _) => Layer::Memory(Limits::of(disk)),
            (DiskKind::ReadOnly, _) => Layer::ReadOnly,
            (DiskKind::Plain, _) => Layer::Plain(self.disk()),
            (DiskKind::Overlay, Some(Limited::Image)) => Layer::Image(self.image()),
            (DiskKind::Overlay, _) => Layer::Disk(self.disk()),
        })
    }

    /// The private layer of a stopped guest, limited as its settings say. What killed commands have
    /// left undone is completed.
    pub fn ready(&self, disk: &Disk) -> Result<Layer, Error> {
        let limits = Limits::of(disk);
        match disk.kind {
            DiskKind::Memory => return Ok(Layer::Memory(limits)),
            DiskKind::ReadOnly => return Ok(Layer::ReadOnly),
            DiskKind::Overlay | DiskKind::Plain => {}
        }
        // All that a guest without limits costs.
        match (self.limited()?, limits.any()) {
            (None, false) => {}
            (Some(Limited::Image), _) => {
                // A rebuild has removed it.
                if !is_there(&self.image())? && is_there(&self.disk().join(NEW))? {
                    image::make(self.pool, &self.image(), limits)?;
                }
                image::fit_when_free(self.pool, &self.image(), limits)?;
                return Ok(Layer::Image(self.image()));
            }
            (Some(Limited::Project(id)), false) => self.lift(id)?,
            (found, true) => {
                if self.limit(found, disk)? == Backend::Image {
                    return Ok(Layer::Image(self.image()));
                }
            }
        }
        Ok(match disk.kind {
            DiskKind::Plain => Layer::Plain(self.disk()),
            _ => Layer::Disk(self.disk()),
        })
    }

    /// Changes the limits of a guest that runs.
    pub fn change(&self, disk: &Disk) -> Result<Fitted, Error> {
        let limits = Limits::of(disk);
        match self.limited()? {
            _ if matches!(disk.kind, DiskKind::Memory | DiskKind::ReadOnly) => {
                Ok(Fitted::AtNextStart)
            }
            Some(Limited::Image) => image::change(&self.image(), limits),
            Some(Limited::Project(id)) if id == self.project => {
                self.apply(disk, id)?;
                Ok(Fitted::Now)
            }
            None if !limits.any() => Ok(Fitted::Now),
            // The files of a running guest cannot be given an id, nor its layer be an image.
            _ => Ok(Fitted::AtNextStart),
        }
    }

    /// Refuses settings that the layer cannot have; `exists` tells whether it has been used.
    pub fn check(&self, old: &Disk, new: &Disk, exists: bool) -> Result<(), Error> {
        let limits = Limits::of(new);
        if exists && old.kind != new.kind {
            return Err(Error::KindFixed);
        }
        if matches!(new.kind, DiskKind::Memory | DiskKind::ReadOnly) || old == new {
            return Ok(());
        }
        let found = self.limited()?;
        if found == Some(Limited::Image) {
            return match (new.size, new.inodes == old.inodes) {
                (None, _) => Err(Error::ImageKeepsSize),
                (_, false) => Err(Error::ImageKeepsInodes),
                (Some(_), true) => Ok(()),
            };
        }
        if !limits.any() || Backend::of(&self.pool.guests_dir())? == Backend::Project {
            return Ok(());
        }
        if new.kind == DiskKind::Plain {
            return Err(Error::PlainNeedsQuota);
        }
        if limits.size.is_none() {
            return Err(Error::NoSize);
        }
        self.check_empty()
    }

    /// Moves the image of a layer that is being rebuilt to `trash`. The next start makes a new one.
    pub fn remove_image(&self, trash: &Path) -> Result<(), Error> {
        let image = self.image();
        unless_gone(fs::rename(&image, trash.join(IMAGE)))
            .map_err(|error| Failed::new("remove", &image, error))?;
        Ok(())
    }

    /// Frees what the host's filesystem keeps about the layer, before it is removed.
    pub fn forget(&self) -> Result<(), Error> {
        match self.limited()? {
            Some(Limited::Project(id)) => Ok(limit::lift(&self.directory, id)?),
            _ => Ok(()),
        }
    }

    /// Limits a layer that had other limits or none.
    fn limit(&self, found: Option<Limited>, disk: &Disk) -> Result<Backend, Error> {
        let (backend, limits) = (Backend::of(&self.directory)?, Limits::of(disk));
        match (backend, found) {
            (Backend::Image, _) if disk.kind == DiskKind::Plain => {
                return Err(Error::PlainNeedsQuota);
            }
            (Backend::Image, Some(_)) => return Err(Error::NotEnforced),
            (Backend::Image, None) => {
                self.check_empty()?;
                if !is_there(&self.image())? {
                    image::make(self.pool, &self.image(), limits)?;
                }
                step::done("disk-image");
                self.record("image")?;
            }
            (Backend::Project, found) => {
                if found != Some(Limited::Project(self.project)) {
                    limit::claim(&self.directory, self.project)?;
                    if let Some(Limited::Project(other)) = found {
                        limit::lift(&self.directory, other)?;
                    }
                    self.record(&format!("project {}", self.project))?;
                    step::done("disk-claimed");
                }
                self.apply(disk, self.project)?;
            }
        }
        step::done("disk-limited");
        Ok(backend)
    }

    /// Sets the limits of a project. A rebuild has made the directories anew.
    fn apply(&self, disk: &Disk, id: u32) -> Result<(), Error> {
        let whole = self.disk();
        let layers = [whole.join(WORK), whole.join(UPPER)];
        let limits = self.rest(Limits::of(disk))?;
        match disk.kind {
            // Its root is made in there.
            DiskKind::Plain => limit::apply(&[&whole], id, limits)?,
            _ => limit::apply(&[&layers[0], &layers[1]], id, limits)?,
        }
        Ok(())
    }

    fn lift(&self, id: u32) -> Result<(), Error> {
        limit::lift(&self.directory, id)?;
        let path = self.directory.join(LIMITED);
        unless_gone(fs::remove_file(&path)).map_err(|error| Failed::new("remove", &path, error))?;
        Ok(())
    }

    /// What is left of the limits: objects that a unification has made of the guest's files are
    /// charged to it.
    fn rest(&self, limits: Limits) -> Result<Limits, Error> {
        let text = read_if_there(&self.disk().join("charged"))?;
        Ok(limits.less(text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)))
    }

    /// Refuses a layer that has files: they would be hidden.
    fn check_empty(&self) -> Result<(), Error> {
        let upper = self.disk().join(UPPER);
        let listed = unless_gone(fs::read_dir(&upper));
        let listed = listed.map_err(|error| Failed::new("list", &upper, error))?;
        let has_files = listed.is_some_and(|mut entries| entries.next().is_some());
        let has_image = is_there(&self.disk().join("image"))?;
        if has_files || has_image { Err(Error::NotEmpty) } else { Ok(()) }
    }

    fn limited(&self) -> Result<Option<Limited>, Failed> {
        let text = read_if_there(&self.directory.join(LIMITED))?;
        Ok(text.and_then(|text| match text.trim().split_once(' ') {
            Some(("project", id)) => Some(Limited::Project(id.parse().ok()?)),
            _ => (text.trim() == "image").then_some(Limited::Image),
        }))
    }

    fn record(&self, text: &str) -> Result<(), Error> {
        self.pool.write(&self.directory.join(LIMITED), &format!("{text}\n")).map_err(Error::Pool)
    }

    fn disk(&self) -> PathBuf {
        self.directory.join("disk")
    }

    fn image(&self) -> PathBuf {
        self.directory.join(IMAGE)
    }
}
