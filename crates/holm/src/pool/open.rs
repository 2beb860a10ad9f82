//! Opening a Holm root: whether there is one, making it, and keeping other users of the host out.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::error::{Error, Result};
use super::files::sync;
use super::instance::{self, DEFAULT_ROOT};
use super::lock::Lock;
use super::root::Pool;
use crate::failed::{is_directory, make_directories, unless_gone};
use crate::process::Waiting;

/// What a directory must have to be a Holm root.
const MARK: &str = "bases";

/// The directories of a root, in the order in which they are made; those before [`MARK`] are
/// all that a command leaves that was killed before.
const DIRECTORIES: [&str; 11] = [
    "objects",
    MARK,
    "guests",
    "ids",
    "lock",
    "stage/image",
    "stage/objects",
    "stage/disk",
    "stage/root",
    "stage/unified",
    "volumes",
];

/// The directory that is made last: a root of an earlier version does not have it yet.
const LAST: &str = DIRECTORIES[DIRECTORIES.len() - 1];

/// What else there may be where a root is made: what mkfs makes.
const LOST_AND_FOUND: &str = "lost+found";

/// What there is at the path of a root.
enum Found {
    /// A root, by its real path.
    Root(PathBuf),
    /// Nothing, or an empty directory.
    Nothing,
    /// Something else.
    Other,
}

impl Pool {
    /// Opens a root, for a command that makes something in it. On first use makes the root and
    /// allocates an instance number.
    pub fn open(root: &Path) -> Result<Self> {
        let found = match find(root)? {
            Found::Root(found) => found,
            Found::Nothing => create(root)?,
            Found::Other => return Err(Error::NotEmpty { root: root.to_owned() }),
        };
        let closed = close(&found)?;
        Ok(numbered(&found)?.was_closed(closed))
    }

    /// Opens a root, for a command that changes what is there. `None` if there is no root where
    /// one can be made.
    pub fn open_existing(root: &Path) -> Result<Option<Self>> {
        let Some(found) = existing(root)? else { return Ok(None) };
        let closed = close(&found)?;
        Ok(Some(numbered(&found)?.was_closed(closed)))
    }

    /// Opens a root, for a command that only looks: it takes none of the few instance numbers. A
    /// root without one has no running guests. `None` as in [`Pool::open_existing`].
    pub fn look(root: &Path) -> Result<Option<Self>> {
        let Some(root) = existing(root)? else { return Ok(None) };
        if instance::stored(&root)?.is_none() {
            let lock = shared(&root)?;
            return Ok(Some(Self::new(root, instance::NONE, lock)));
        }
        numbered(&root).map(Some)
    }
}

/// Opens the root, and gives it an instance number if it has none.
fn numbered(root: &Path) -> Result<Pool> {
    // Before the number is allocated, so that no `release` takes it away.
    let lock = shared(root)?;
    let instance = instance::allocate(root)?;
    Ok(Pool::new(root.to_owned(), instance, lock))
}

/// Locks the root shared, which waits only for a `release`.
fn shared(root: &Path) -> Result<Lock> {
    let what = format_args!("the Holm root {}", root.display());
    Lock::shared(root, Waiting { what: &what, say: None })
}

/// The real path of the root. `None` if nobody has made one yet, which is no error where that is to
/// be expected: at the usual place, and in an empty directory. A name that leads nowhere is more
/// likely to be mistyped, and must not look like a host without guests.
fn existing(root: &Path) -> Result<Option<PathBuf>> {
    match find(root)? {
        Found::Root(found) => Ok(Some(found)),
        Found::Nothing if root == Path::new(DEFAULT_ROOT) || is_directory(root)? => Ok(None),
        Found::Nothing | Found::Other => Err(Error::NoRoot { root: root.to_owned() }),
    }
}

fn find(root: &Path) -> Result<Found> {
    // Everything below needs it, and half of it would be done before that is refused.
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotPrivileged);
    }
    let fail = |error| Error::io("open the Holm root", root, error);
    let Some(real) = unless_gone(fs::canonicalize(root)).map_err(fail)? else {
        return Ok(Found::Nothing);
    };
    if is_directory(&real.join(MARK))? {
        if !is_directory(&real.join(LAST))? {
            fill(&real)?;
        }
        return Ok(Found::Root(real));
    }
    for entry in fs::read_dir(&real).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        if name != LOST_AND_FOUND && name != DIRECTORIES[0] {
            return Ok(Found::Other);
        }
    }
    Ok(Found::Nothing)
}

fn create(root: &Path) -> Result<PathBuf> {
    make(root, 0o700)?;
    // An empty directory that was there already, before there is anything to read in it.
    close(root)?;
    fill(root)?;
    let root =
        fs::canonicalize(root).map_err(|error| Error::io("open the Holm root", root, error))?;
    sync(root.parent().unwrap_or(&root))?;
    Ok(root)
}

/// Closes the root to the other users of the host: what they must not read in a base, such as its
/// /etc/shadow, is an object that has no mode of its own to protect it. Returns whether the root
/// was open to them.
fn close(root: &Path) -> Result<bool> {
    const OTHERS: u32 = 0o077;
    let look = || fs::metadata(root).map_err(|error| Error::io("look at", root, error));
    let found = look()?;
    if found.uid() != 0 {
        return Err(Error::NotOwned { root: root.to_owned(), uid: found.uid() });
    }
    let mode = found.mode() & 0o777;
    if mode & OTHERS == 0 {
        return Ok(false);
    }
    let open = |source| Error::Open { root: root.to_owned(), mode, source };
    fs::set_permissions(root, Permissions::from_mode(0o700)).map_err(open)?;
    // FAT keeps no modes, and says nothing.
    if look()?.mode() & OTHERS != 0 {
        return Err(open(Errno::OPNOTSUPP.into()));
    }
    Ok(true)
}

/// Makes those directories of a root that do not exist.
fn fill(root: &Path) -> Result<()> {
    DIRECTORIES.iter().try_for_each(|directory| make(&root.join(directory), 0o755))?;
    Ok(sync(root)?)
}

fn make(directory: &Path, mode: u32) -> Result<()> {
    make_directories(directory, mode)
        .map_err(|error| Error::io("make the directory", directory, error))
}
