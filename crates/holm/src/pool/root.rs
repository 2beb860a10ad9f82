use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::error::{Error, Result};
use super::files::{names_in, write};
use super::instance::{self, RUN};
use super::lock::Lock;
use super::name::Name;
use crate::Failed;
use crate::cgroup::{self, Layout, PoolCgroup};
use crate::process::Waiting;

/// An opened Holm root.
#[derive(Debug, Clone)]
pub struct Pool {
    root: PathBuf,
    run: PathBuf,
    instance: u8,
    // Shared, so that `release` does not take the instance number away while a command uses it.
    lock: Arc<Lock>,
    on_repair: Option<fn(&str)>,
    was_open: bool,
    cgroup: OnceLock<PoolCgroup>,
}

impl Pool {
    pub(super) fn new(root: PathBuf, instance: u8, lock: Lock) -> Self {
        let run = Path::new(RUN).join(instance.to_string());
        let (lock, cgroup) = (Arc::new(lock), OnceLock::new());
        Self { root, run, instance, lock, on_repair: None, was_open: false, cgroup }
    }

    /// Sets whether the root was open to other users of the host.
    pub(super) fn was_closed(self, was_open: bool) -> Self {
        Self { was_open, ..self }
    }

    /// Sets a function that is called with a sentence for everything that a command repairs in
    /// passing, and for what it waits for.
    #[must_use]
    pub fn on_repair(self, report: fn(&str)) -> Self {
        let pool = Self { on_repair: Some(report), ..self };
        if pool.was_open {
            let root = pool.root.display();
            pool.report_repair(&format!(
                "other users of the host could read what is in {root}; its mode is 0700 now"
            ));
        }
        pool
    }

    /// Reports something that was repaired.
    pub(crate) fn report_repair(&self, sentence: &str) {
        if let Some(report) = self.on_repair {
            report(sentence);
        }
    }

    /// Locks the root exclusively until this command ends. An error if another command runs in it.
    pub fn lock_exclusively(&self) -> Result<()> {
        match self.lock.try_exclusive() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::InUse { root: self.root.clone() }),
            Err(errno) => Err(Error::io("lock", &self.root, errno.into())),
        }
    }

    /// Releases the instance number. The next command in this root allocates one again.
    pub fn release_instance(self) -> Result<()> {
        match fs::remove_dir_all(&self.run) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.run, error))
            }
            _ => instance::release(&self.root, self.instance),
        }
    }

    /// Replaces a file of this root atomically and durably.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<()> {
        write(&self.root, path, text)
    }

    /// The root's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The instance number, which distinguishes this root's user ids, addresses, interfaces and
    /// tables from those of other roots. 0, under which the host has nothing, if the root has none
    /// and was opened by [`Pool::look`].
    pub fn instance(&self) -> u8 {
        self.instance
    }

    /// The directory of objects.
    pub fn objects_dir(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// The directory of a base.
    pub fn base_dir(&self, base: &Name) -> PathBuf {
        self.root.join("bases").join(base.as_str())
    }

    /// The directory of all guests.
    pub fn guests_dir(&self) -> PathBuf {
        self.root.join("guests")
    }

    /// The directory of a guest.
    pub fn guest_dir(&self, guest: &Name) -> PathBuf {
        self.guests_dir().join(guest.as_str())
    }

    /// The directory of all volumes.
    pub fn volumes_dir(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// The directory of a volume.
    pub fn volume_dir(&self, volume: &Name) -> PathBuf {
        self.volumes_dir().join(volume.as_str())
    }

    /// The directory of a guest's sockets.
    pub fn guest_run_dir(&self, guest: &Name) -> PathBuf {
        self.run.join("guests").join(guest.as_str())
    }

    /// The directory of the images that are mounted for several guests.
    pub fn images_dir(&self) -> PathBuf {
        self.run.join("images")
    }

    /// The directory with mountpoints for the layers of a guest's root, for use in a private mount
    /// namespace.
    pub fn stage_dir(&self) -> PathBuf {
        self.root.join("stage")
    }

    /// The cgroup above those of this root's guests. The host's hierarchies are probed once.
    pub fn cgroup(&self) -> cgroup::Result<&PoolCgroup> {
        if let Some(cgroup) = self.cgroup.get() {
            return Ok(cgroup);
        }
        let name = instance::cgroup_name(&self.root, self.instance);
        let found = PoolCgroup::new(Layout::probe()?, name);
        Ok(self.cgroup.get_or_init(|| found))
    }

    /// The names of all guests, sorted.
    pub fn guests(&self) -> Result<Vec<Name>> {
        names_in(&self.guests_dir())
    }

    /// The names of all bases, sorted.
    pub fn bases(&self) -> Result<Vec<Name>> {
        names_in(&self.root.join("bases"))
    }

    /// The names of all volumes, sorted. A root that an earlier version has made has none before
    /// the next command that changes something.
    pub fn volumes(&self) -> Result<Vec<Name>> {
        names_in(&self.volumes_dir())
    }

    /// Locks a guest. Waits while another process has it locked.
    pub fn lock_guest(&self, guest: &Name) -> Result<Lock> {
        let dir = self.guest_dir(guest);
        let what = format_args!("guest {guest}");
        loop {
            match Lock::directory(&dir, self.waiting(&what)) {
                Ok(lock) if !lock.is_of(&dir)? => {}
                Err(Error::Failed(Failed { source, .. }))
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    return Err(Error::NoGuest { name: guest.clone(), known: self.guests()? });
                }
                other => return other,
            }
        }
    }

    /// Locks a guest unless another process has it locked.
    pub fn try_lock_guest(&self, guest: &Name) -> Result<Option<Lock>> {
        let dir = self.guest_dir(guest);
        match Lock::try_directory(&dir) {
            Ok(Some(lock)) if lock.is_of(&dir)? => Ok(Some(lock)),
            Ok(_) => Ok(None),
            // It was removed by the command that had it locked.
            Err(Error::Failed(Failed { source, .. }))
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Locks a volume unless another process has it locked.
    pub(crate) fn try_lock_volume(&self, volume: &Name) -> Result<Option<Lock>> {
        Lock::try_directory(&self.volume_dir(volume))
    }

    /// Takes one of the locks that concern the whole root. Waits while another process has it.
    pub fn lock(&self, what: &str) -> Result<Lock> {
        let lock = format_args!("`{what}` of the Holm root {}", self.root.display());
        Lock::file(&self.root.join("lock").join(what), self.waiting(&lock))
    }

    /// What a command says that waits for a lock.
    pub(crate) fn waiting<'a>(&self, what: &'a dyn Display) -> Waiting<'a> {
        Waiting { what, say: self.on_repair }
    }
}
