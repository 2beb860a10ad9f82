//! Where everything lives: a Holm root, its locks, and the numbers that keep roots and guests apart.
//!
//! ```text
//! /var/lib/holm/                  the root (--root, HOLM_ROOT), 0700
//!   objects/ab/cdef…              file bodies, named by digest
//!   bases/NAME/{base.toml,image}
//!   guests/NAME/                  guest.toml, id, disk/{upper,work}, log, last
//!   ids/C                         context id C is taken; a symbolic link to ../guests/NAME
//!   lock/WHAT                     locks that concern the whole root
//!   tmp/                          what is being made or removed; nothing here outlives its maker
//!   stage/{image,objects,disk,root}  mountpoints, empty on the host: used in private mount namespaces
//! /run/holm/
//!   instances/N                   symbolic link to the root that has instance number N
//!   N/guests/NAME/monitor.sock
//! ```

mod error;
mod ids;
mod instance;
mod lock;
mod name;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Failed;
pub use error::Error;
pub use ids::MAX_CONTEXT;
pub use instance::INSTANCES;
pub use lock::Lock;
pub use name::Name;

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;

/// The root that is used when neither `--root` nor `HOLM_ROOT` names another.
pub const DEFAULT_ROOT: &str = "/var/lib/holm";

const RUN: &str = "/run/holm";

/// One Holm root.
#[derive(Debug, Clone)]
pub struct Pool {
    root: PathBuf,
    run: PathBuf,
    instance: u8,
    // Nobody gives the root's number up while a command goes by it.
    in_use: Arc<Lock>,
    hear: Option<fn(&str)>,
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
        Ok(Self { root, run, instance, in_use, hear: None })
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

    /// The folder of what lives only while the host is up.
    pub fn run_dir(&self) -> &Path {
        &self.run
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

    /// The name of the control group that holds this root's guests.
    pub fn group(&self) -> String {
        instance::group(&self.root, self.instance)
    }

    /// The names of all guests, sorted.
    pub fn guests(&self) -> Result<Vec<Name>> {
        names_in(&self.root.join("guests"))
    }

    /// The names of all bases, sorted.
    pub fn bases(&self) -> Result<Vec<Name>> {
        names_in(&self.root.join("bases"))
    }

    /// Makes the folder of what is being made or removed.
    pub fn make_tmp(&self) -> Result<()> {
        let tmp = self.root.join("tmp");
        match fs::DirBuilder::new().mode(0o700).create(&tmp) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io("make the folder", &tmp, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes what makers and removers of guests that were killed have left in `tmp/`. Their names end in their
    /// process ids.
    pub fn clean_tmp(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("tmp")) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours = name.starts_with("new-") || name.starts_with("rm-");
            let maker = name.rsplit('-').next().and_then(|pid| pid.parse::<u32>().ok());
            let lives = maker.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
            if !ours || lives {
                continue;
            }
            drop(remove_tree(&path));
        }
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

/// Writes a file such that a reader sees the old text or the new, and a crash leaves one of them.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{file_name}.{}", std::process::id()));
    let store = || -> std::io::Result<()> {
        fs::write(&new, text)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, path)?;
        fs::File::open(folder)?.sync_all()
    };
    store().map_err(|error| {
        let _ = fs::remove_file(&new);
        Error::io("write the file", path, error)
    })
}

/// Removes a tree without ever leaving its filesystem: if something is mounted there against all
/// expectation, it stays, and the error says so. However deep a guest has made it: `rm` holds no descriptor per level.
pub(crate) fn remove_tree(dir: &Path) -> Result<()> {
    let output = std::process::Command::new("rm")
        .args(["-rf", "--one-file-system", "--"])
        .arg(dir)
        .output()
        .map_err(|error| Error::io("remove", dir, error))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::io("remove", dir, std::io::Error::other(words)))
}

fn names_in(folder: &Path) -> Result<Vec<Name>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io("list", folder, error))?;
    let mut names: Vec<Name> =
        entries.filter_map(|entry| Name::new(entry.ok()?.file_name().to_str()?).ok()).collect();
    names.sort();
    Ok(names)
}
