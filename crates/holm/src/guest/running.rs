use super::error::{Error, Result};
use super::handle::Guest;
use crate::cgroup::GuestCgroup;
use crate::pool::Name;
use crate::record::RunRecord;

/// A running guest.
#[derive(Debug)]
pub struct RunningGuest {
    /// Its cgroup.
    pub cgroup: GuestCgroup,
    /// Its run record.
    pub record: RunRecord,
}

impl RunningGuest {
    /// Stores the changed run record.
    pub(super) fn write_record(&self, name: &Name) -> Result<()> {
        write_record(&self.cgroup, name, &self.record)
    }
}

/// The running guest. It is not locked, so it may end at any time.
pub fn running(guest: &Guest<'_>) -> Result<RunningGuest> {
    if let Some(cgroup) = guest.cgroup()?
        && let Some(record) = read_record(&cgroup, guest.name())?
        && cgroup.populated()?
    {
        return Ok(RunningGuest { cgroup, record });
    }
    if guest.has_dir()? {
        return Err(Error::NotRunning(guest.name().clone()));
    }
    Err(guest.missing()?)
}

/// The run record on a cgroup; `None` if a start has not got that far.
pub(super) fn read_record(cgroup: &GuestCgroup, name: &Name) -> Result<Option<RunRecord>> {
    let Some(bytes) = cgroup.record()? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| Error::RecordUnreadable { name: name.to_string(), source })
}

/// Stores a run record on a cgroup.
pub(super) fn write_record(cgroup: &GuestCgroup, name: &Name, record: &RunRecord) -> Result<()> {
    let text = serde_json::to_vec(record)
        .map_err(|source| Error::RecordUnreadable { name: name.to_string(), source })?;
    Ok(cgroup.set_record(&text)?)
}
