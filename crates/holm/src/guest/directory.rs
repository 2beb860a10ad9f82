//! The files in `guests/NAME` other than the private layer: settings, the last run, and the end
//! note, in which the monitor writes down how init ended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use holm_proto::ended::Note;
use holm_proto::path::ENDED;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use crate::config::{self, Config};
use crate::failed::read_if_there;
use crate::pool;
use crate::record::LastRun;

impl Guest<'_> {
    /// Where its settings are.
    pub fn config_path(&self) -> PathBuf {
        self.dir().join("guest.toml")
    }

    /// Its guest.toml, as text and parsed.
    pub fn config(&self) -> Result<(String, Config)> {
        let path = self.config_path();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.has_dir()? => {
                return Err(self.missing()?);
            }
            text => text.map_err(|error| Error::io("read", &path, error))?,
        };
        let config = config::parse(&text, &path.to_string_lossy())?;
        Ok((text, config))
    }

    /// Its settings; `None` if it is gone, or its guest.toml is or has a mistake.
    pub(super) fn usable_config(&self) -> Result<Option<Config>> {
        match self.config() {
            Ok((_, config)) => Ok(Some(config)),
            Err(Error::Config(_) | Error::Pool(pool::Error::NoGuest { .. })) => Ok(None),
            Err(Error::Failed(failed))
                if matches!(
                    failed.source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidData
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Its last run; `None` if no run has ended yet, or if it was recorded by a version of Holm
    /// that wrote it otherwise.
    pub(super) fn last_run(&self) -> Result<Option<LastRun>> {
        let text = read_if_there(&self.dir().join("last"))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The end note, which is removed once the last run has been recorded.
    fn end_note_path(&self) -> PathBuf {
        self.dir().join(OsStr::from_bytes(ENDED.to_bytes()))
    }

    /// How init ended according to the end note, if that is about this run. A monitor writes the
    /// note without locking the guest, so it may be an older one.
    pub(super) fn end_note(&self, run: u64) -> Result<Option<String>> {
        let note = read_if_there(&self.end_note_path())?.and_then(|text| Note::parse(&text));
        Ok(note.filter(|note| note.run == run).map(|note| note.ended.to_string()))
    }
}

impl LockedGuest<'_> {
    /// Records how its run ended.
    pub(super) fn write_last_run(&self, last: &LastRun) -> Result<()> {
        let text = serde_json::to_string(last).unwrap_or_default();
        Ok(self.pool().write(&self.dir().join("last"), &text)?)
    }

    /// Removes the end note.
    pub(super) fn remove_end_note(&self) {
        let _ = fs::remove_file(self.end_note_path());
    }

    /// Cancels the pending restart. Returns whether there was one.
    pub(super) fn cancel_restart(&self) -> Result<bool> {
        match self.last_run()? {
            Some(last) if last.pending.is_some() => {
                self.write_last_run(&LastRun { pending: None, ..last })?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Moves a directory to a path that must not exist.
pub(super) fn move_to(from: &Path, to: &Path) -> Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        .map_err(|errno| Error::io("move to", to, errno))
}

impl Guest<'_> {
    /// Makes the entry of its directory survive a power failure: that it was made, renamed or
    /// removed.
    pub(super) fn sync_entry(&self) -> Result<()> {
        Ok(pool::sync(&self.pool().guests_dir())?)
    }
}
