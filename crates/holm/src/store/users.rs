//! The guests that use a base.

use std::fs;
use std::io;

use super::error::Error;
use crate::cgroup::GuestCgroup;
use crate::pool::{Name, Pool};
use crate::record::RunRecord;
use crate::step;

/// The guests whose guest.toml names the base, sorted.
pub(super) fn guests_configured_with(pool: &Pool, base: &Name) -> Result<Vec<String>, Error> {
    let mut users = Vec::new();
    let guests = pool.guests()?;
    step::done("base-guests");
    for guest in guests {
        let path = pool.guest_dir(&guest).join("guest.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        if names_base(&text, base.as_str()) {
            users.push(guest.to_string());
        }
    }
    Ok(users)
}

/// The guests that run on the base, sorted. Their guest.toml may name another by now.
pub(super) fn guests_running_on(pool: &Pool, base: &Name) -> Result<Vec<String>, Error> {
    let mut users = Vec::new();
    for name in pool.cgroup()?.guests()? {
        let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, &name)? else { continue };
        if cgroup.populated()?
            && let Some(record) = cgroup.record()?
            && runs_on(&record, base.as_str())
        {
            users.push(name);
        }
    }
    Ok(users)
}

/// Whether the text of a guest.toml has `base = "NAME"`. If it does not parse, whether it contains
/// the name at all: a guest must not lose its base because its guest.toml has a mistake.
fn names_base(text: &str, name: &str) -> bool {
    match text.parse::<toml::Table>() {
        Ok(table) => table.get("base").and_then(toml::Value::as_str) == Some(name),
        Err(_) => text.contains(name),
    }
}

/// Whether the text of a run record names the base. If it does not parse, whether it contains the
/// name at all.
fn runs_on(text: &[u8], name: &str) -> bool {
    match serde_json::from_slice::<RunRecord>(text) {
        Ok(record) => record.base == name,
        Err(_) => String::from_utf8_lossy(text).contains(name),
    }
}

#[cfg(test)]
mod tests {
    use super::{names_base, runs_on};

    #[test]
    fn guests_base() {
        for (text, want) in [
            ("base = \"deb\"\n", true),
            ("# deb\nbase = 'deb'", true),
            ("base = \"debian\"\n", false),
            ("hostname = \"deb\"\n", false),
            ("", false),
            ("base = \"deb\"\n = nonsense", true),
            ("base = \"other\"\n = nonsense", false),
        ] {
            assert_eq!(names_base(text, "deb"), want, "{text:?}");
        }
    }

    #[test]
    fn a_run_record_that_cannot_be_read_protects_too() {
        assert!(runs_on(b"{\"base\":\"deb\",\"of\":\"another version\"}", "deb"));
        assert!(!runs_on(b"{\"base\":\"other\"}", "deb"));
    }
}
