use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::error::{Error, Result};
use super::files::names_in;
use super::instance::{self, RUN};
use super::lock::Lock;
use super::name::Name;
use crate::Failed;
use crate::cgroup::{self, Layout, PoolCgroup};

/// One Holm root.
#[derive(Debug, Clone)]
pub struct Pool {
    root: PathBuf,
    run: PathBuf,
    instance: u8,
    // Nobody gives the root's number up while a command goes by it.
    in_use: Arc<Lock>,
    hear: Option<fn(&str)>,
    cgroup: OnceLock<PoolCgroup>,
}

impl Pool {
    /// Opens the root, making it and taking an instance number for it at first use.
    pub fn open(root: &Path) -> Result<Self> {
        let root = match fs::canonicalize(root) {
            Ok(root) => root,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => create(root)?,
            Err(error) => return Err(Error::io("open the Holm root", root, error)),
        };
        if !root.join("stage/root").is_dir() {
            create(&root)?;
        }
        let in_use = Arc::new(Lock::shared(&root)?);
        let instance = instance::of(&root)?;
        let run = Path::new(RUN).join(instance.to_string());
        Ok(Self { root, run, instance, in_use, hear: None, cgroup: OnceLock::new() })
    }

    /// The same root; `hear` is told in a sentence, as it happens, what a command puts right on its way.
    #[must_use]
    pub fn heard_by(self, hear: fn(&str)) -> Self {
        Self { hear: Some(hear), ..self }
    }

    /// Tells whoever uses this root of something that was put right.
    pub(crate) fn tell(&self, sentence: &str) {
        if let Some(hear) = self.hear {
            hear(sentence);
        }
    }

    /// Keeps all other commands out of the root until this one ends; an error if one is at work.
    pub fn keep_others_out(&self) -> Result<()> {
        if self.in_use.is_alone() { Ok(()) } else { Err(Error::InUse { root: self.root.clone() }) }
    }

    /// Gives the instance number back, for another root to take. The next command takes one anew.
    pub fn give_up_instance(self) -> Result<()> {
        match fs::remove_dir_all(&self.run) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.run, error))
            }
            _ => instance::give_up(&self.root, self.instance),
        }
    }

    /// The root's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What tells this root's user ids, addresses, interfaces and tables from another root's.
    pub fn instance(&self) -> u8 {
        self.instance
    }

    /// The folder of shared file bodies.
    pub fn objects_dir(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// The folder of a base.
    pub fn base_dir(&self, base: &Name) -> PathBuf {
        self.root.join("bases").join(base.as_str())
    }

    /// The folder of a guest.
    pub fn guest_dir(&self, guest: &Name) -> PathBuf {
        self.root.join("guests").join(guest.as_str())
    }

    /// The folder of a guest's sockets.
    pub fn guest_run_dir(&self, guest: &Name) -> PathBuf {
        self.run.join("guests").join(guest.as_str())
    }

    /// An empty folder to mount on, in a mount namespace of one's own.
    pub fn stage(&self, what: &str) -> PathBuf {
        self.root.join("stage").join(what)
    }

    /// The control group that holds those of this root's guests. The host's hierarchies are looked for once.
    pub fn cgroup(&self) -> cgroup::Result<&PoolCgroup> {
        if let Some(cgroup) = self.cgroup.get() {
            return Ok(cgroup);
        }
        let name = instance::group(&self.root, self.instance);
        let found = PoolCgroup::new(Layout::probe()?, name);
        Ok(self.cgroup.get_or_init(|| found))
    }

    /// The names of all guests, sorted.
    pub fn guests(&self) -> Result<Vec<Name>> {
        names_in(&self.root.join("guests"))
    }

    /// The names of all bases, sorted.
    pub fn bases(&self) -> Result<Vec<Name>> {
        names_in(&self.root.join("bases"))
    }

    /// Locks a guest until the lock is dropped; waits while another process has it.
    pub fn lock_guest(&self, guest: &Name) -> Result<Lock> {
        let dir = self.guest_dir(guest);
        loop {
            match Lock::folder(&dir) {
                Ok(lock) if !lock.is_of(&dir) => {}
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
        Ok(Lock::try_folder(&dir)?.filter(|lock| lock.is_of(&dir)))
    }

    /// Takes the lock on something of the whole root; waits while another process has it.
    pub fn lock(&self, what: &str) -> Result<Lock> {
        Lock::file(&self.root.join("lock").join(what))
    }
}

/// Makes the folders of a root, those that are missing.
fn create(root: &Path) -> Result<PathBuf> {
    let make = |dir: &Path, mode: u32| {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(dir)
            .map_err(|error| Error::io("make the folder", dir, error))
    };
    make(root, 0o700)?;
    let folders = ["objects", "bases", "guests", "ids", "lock", "stage/image", "stage/objects"];
    for folder in folders.into_iter().chain(["stage/disk", "stage/root"]) {
        make(&root.join(folder), 0o755)?;
    }
    fs::canonicalize(root).map_err(|error| Error::io("open the Holm root", root, error))
}
