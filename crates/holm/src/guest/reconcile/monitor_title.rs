use holm_proto::handoff::TITLE;

use super::super::error::{Error, Result};
use super::super::handle::Guest;
use crate::failed::unless_gone;

/// Whether the process with this id is the guest's monitor by its title, and not a `holm run
/// --keep`, which waits for its guest itself: it has no socket, and writes no end note.
pub fn is_monitor(guest: &Guest<'_>, pid: i32) -> Result<bool> {
    let title = format!("/proc/{pid}/cmdline");
    let title =
        unless_gone(std::fs::read(&title)).map_err(|error| Error::io("read", title, error))?;
    let own = format!("{TITLE}{}\0", guest.name());
    Ok(title.is_some_and(|title| title.starts_with(own.as_bytes())))
}
