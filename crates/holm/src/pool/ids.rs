use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use super::files::sync;
use super::name::Name;
use super::root::Pool;
use crate::failed::{link_if_there, read_if_there};
use crate::record::{Ids, NESTED_RANGES, RANGE};

/// The largest context id; the smallest is 1. The context id is the number of the guest's range in
/// its instance's block of 2^26 ids, which is divided into 1024 ranges.
const MAX_CONTEXT: u32 = 1023;

impl Pool {
    /// Allocates a context id and its id range for an ephemeral guest, until
    /// [`Pool::release_ids`]: the first free one from `first` on.
    ///
    /// The allocation is a symbolic link in `ids/`: making one succeeds for a single guest only,
    /// and does not need a look at the others.
    pub fn allocate_ids(&self, guest: &Name, nesting: bool, first: u32) -> Result<Ids> {
        self.allocate(&format!("../run/{guest}"), nesting, first)
    }

    /// Allocates ids for a guest with a directory, which must be locked. Ids that a killed command
    /// has allocated for it are used again.
    pub fn allocate_persistent_ids(&self, guest: &Name, nesting: bool) -> Result<Ids> {
        let ids = self.allocate(&format!("../guests/{guest}"), nesting, 1)?;
        // Before the guest's files get these ids: after a power failure another guest could.
        self.sync_ids()?;
        Ok(ids)
    }

    fn allocate(&self, owner: &str, nesting: bool, first: u32) -> Result<Ids> {
        let width = if nesting { NESTED_RANGES } else { 1 };
        let last = MAX_CONTEXT + 1 - width;
        let first = (first.max(1) - 1) % last + 1;
        for context in (first..=last).chain(1..first) {
            if self.allocate_contexts(owner, context, width)? {
                return Ok(Ids::new(self.instance(), context, nesting));
            }
        }
        Err(Error::NoIds { count: MAX_CONTEXT as usize })
    }

    /// Allocates `width` context ids from `first` on, all or none.
    fn allocate_contexts(&self, owner: &str, first: u32, width: u32) -> Result<bool> {
        for id in first..first + width {
            let link = self.id_link(id);
            match symlink(owner, &link) {
                Ok(()) => {}
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists
                        && owner.starts_with("../guests/")
                        && link_if_there(&link)?.is_some_and(|taken| taken == Path::new(owner)) => {
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    (first..id).for_each(|taken| drop(fs::remove_file(self.id_link(taken))));
                    return Ok(false);
                }
                Err(error) => return Err(Error::io("make the link", &link, error)),
            }
        }
        Ok(true)
    }

    /// Releases ids of `owner`, except those in `kept` and those that belong to another guest by
    /// now.
    pub fn release_ids(&self, owner: &Name, ids: Ids, kept: Option<Ids>) {
        let kept = kept.map_or(0..0, |kept| kept.contexts());
        let released = ids.contexts().filter(|id| !kept.contains(id));
        // What cannot be read stays allocated.
        for id in released.filter(|id| self.owns(owner, *id).unwrap_or(false)) {
            drop(fs::remove_file(self.id_link(id)));
        }
    }

    /// Whether all these ids are allocated to `owner`. The ids in a guest's file `id` may belong to
    /// another guest by now, because a command that writes it can be killed at any point.
    pub fn owns_ids(&self, owner: &Name, ids: Ids) -> Result<bool> {
        for id in ids.contexts() {
            if !self.owns(owner, id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn owns(&self, owner: &Name, context: u32) -> Result<bool> {
        let link = self.owner_link(context)?;
        Ok(link.is_some_and(|link| link.file_name().is_some_and(|name| name == owner.as_str())))
    }

    /// Where the link of a context id leads, if it is allocated.
    fn owner_link(&self, context: u32) -> Result<Option<PathBuf>> {
        Ok(link_if_there(&self.id_link(context))?)
    }

    /// The ids in the file `id` of a guest's directory; `None` if it has none yet.
    pub fn recorded_ids(&self, directory: &Path) -> Result<Option<Ids>> {
        let Some(text) = read_if_there(&directory.join("id"))? else { return Ok(None) };
        let parsed = || {
            let (context, count) = text.trim().split_once(' ')?;
            let nesting = count.parse::<u32>().ok()? > RANGE;
            Some(Ids::new(self.instance(), context.parse().ok()?, nesting))
        };
        Ok(parsed())
    }

    /// Transfers a guest's ids to `owner`, its new name.
    pub fn transfer_ids(&self, ids: Ids, guest: &Name, owner: &Name) -> Result<()> {
        for id in ids.contexts() {
            if !self.owns(guest, id)? {
                continue;
            }
            let (link, new) = (self.id_link(id), self.tmp_file(&format!("id-{id}"))?);
            drop(fs::remove_file(&new));
            symlink(format!("../guests/{owner}"), &new)
                .and_then(|()| fs::rename(&new, &link))
                .map_err(|error| Error::io("make the link", &link, error))?;
        }
        self.sync_ids()
    }

    /// Makes what was allocated and released survive a power failure.
    pub fn sync_ids(&self) -> Result<()> {
        Ok(sync(&self.root().join("ids"))?)
    }

    /// All allocated context ids, with their owners.
    pub fn allocated_ids(&self) -> Result<Vec<(u32, Name)>> {
        let directory = self.root().join("ids");
        let entries =
            fs::read_dir(&directory).map_err(|error| Error::io("list", &directory, error))?;
        let mut taken = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| Error::io("list", &directory, error))?;
            let Some(context) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // It may have been released since.
            let Some(owner) = self.owner_link(context)? else { continue };
            let owner = owner.file_name().and_then(|name| Name::new(name.to_str()?).ok());
            taken.extend(owner.map(|owner| (context, owner)));
        }
        Ok(taken)
    }

    /// Releases an id whose guest does not exist, unless it was allocated in the last `seconds`: a
    /// command may be about to create that guest.
    pub fn release_stale_id(&self, context: u32, seconds: u64) {
        let link = self.id_link(context);
        let age =
            fs::symlink_metadata(&link).and_then(|data| data.modified()).map(|at| at.elapsed());
        if matches!(age, Ok(Ok(age)) if age.as_secs() > seconds) {
            drop(fs::remove_file(link));
        }
    }

    fn id_link(&self, context: u32) -> PathBuf {
        self.root().join("ids").join(context.to_string())
    }
}
