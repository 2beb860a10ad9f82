use std::ops::Deref;
use std::path::PathBuf;

use super::error::{Error, Result};
use crate::cgroup::GuestCgroup;
use crate::disk::Place;
use crate::failed::is_there;
use crate::pool::{self, Lock, Name, Pool};
use crate::record::Ids;

/// A handle of a guest, which may or may not exist or run.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    pool: &'a Pool,
    name: &'a Name,
}

impl<'a> Guest<'a> {
    /// The guest of this name in a Holm root.
    pub fn new(pool: &'a Pool, name: &'a Name) -> Self {
        Self { pool, name }
    }

    /// The Holm root that it belongs to.
    pub fn pool(&self) -> &'a Pool {
        self.pool
    }

    /// Its name.
    pub fn name(&self) -> &'a Name {
        self.name
    }

    /// `guests/NAME`.
    pub fn dir(&self) -> PathBuf {
        self.pool.guest_dir(self.name)
    }

    /// The directory of its sockets.
    pub fn run_dir(&self) -> PathBuf {
        self.pool.guest_run_dir(self.name)
    }

    /// Where its private layer is, for a guest with these ids.
    pub(super) fn place(&self, ids: Ids) -> Place<'a> {
        Place::new(self.pool, self.name, ids.base)
    }

    /// Whether it has a directory: an ephemeral guest has none.
    pub(super) fn has_dir(&self) -> Result<bool> {
        Ok(is_there(&self.dir())?)
    }

    /// Its cgroup; a guest without one does not run.
    pub(super) fn cgroup(&self) -> Result<Option<GuestCgroup>> {
        Ok(GuestCgroup::open(self.pool.cgroup()?, self.name.as_str())?)
    }

    /// Locks it; waits while another process has it locked. An error if it has no directory.
    pub(super) fn lock(&self) -> Result<LockedGuest<'a>> {
        Ok(LockedGuest { guest: *self, _lock: self.pool.lock_guest(self.name)? })
    }

    /// Locks it unless another process has it locked.
    pub(super) fn try_lock(&self) -> Result<Option<LockedGuest<'a>>> {
        let lock = self.pool.try_lock_guest(self.name)?;
        Ok(lock.map(|lock| LockedGuest { guest: *self, _lock: lock }))
    }

    /// The error for a guest that does not exist. It lists those that do.
    pub(super) fn missing(&self) -> Result<Error> {
        let known = self.pool.guests()?;
        Ok(pool::Error::NoGuest { name: self.name.clone(), known }.into())
    }
}

/// A guest with a directory, locked: no other command works on it as long as this lives.
#[derive(Debug)]
pub struct LockedGuest<'a> {
    guest: Guest<'a>,
    _lock: Lock,
}

impl<'a> Deref for LockedGuest<'a> {
    type Target = Guest<'a>;

    fn deref(&self) -> &Guest<'a> {
        &self.guest
    }
}
