//! The guests that have a volume.

use std::fs;

use super::Result;
use crate::Failed;
use crate::cgroup::GuestCgroup;
use crate::failed::unless_gone;
use crate::pool::{Name, Pool};
use crate::record::RunRecord;

/// The guests that have a volume, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// Those whose guest.toml names it.
    pub named: Vec<String>,
    /// Those that run with it; their guest.toml may no longer name it.
    pub running: Vec<String>,
}

impl Users {
    /// All of them, each once.
    pub fn all(&self) -> Vec<String> {
        let mut all = [self.named.as_slice(), &self.running].concat();
        all.sort();
        all.dedup();
        all
    }
}

/// Looks for the guests that have the volume.
pub fn users(pool: &Pool, volume: &Name) -> Result<Users> {
    let mut users = Users::default();
    for guest in pool.guests()? {
        let path = pool.guest_dir(&guest).join("guest.toml");
        let text = unless_gone(fs::read_to_string(&path))
            .map_err(|error| Failed::new("read", &path, error))?;
        if text.is_some_and(|text| names_volume(&text, volume.as_str())) {
            users.named.push(guest.to_string());
        }
    }
    for name in pool.cgroup()?.guests()? {
        let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, &name)? else { continue };
        if cgroup.populated()?
            && let Some(record) = cgroup.record()?
            && runs_with(&record, volume.as_str())
        {
            users.running.push(name);
        }
    }
    Ok(users)
}

/// Whether the text of a guest.toml has the volume among `volumes`. If it does not parse, whether
/// it contains the name at all: a guest must not lose its data because of a mistake.
fn names_volume(text: &str, name: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return text.contains(name) };
    let is_it = |item: &toml::Value| {
        item.as_str().and_then(|item| item.split(':').next()).is_some_and(|item| item == name)
    };
    table.get("volumes").and_then(toml::Value::as_array).is_some_and(|all| all.iter().any(is_it))
}

/// Whether the text of a run record names the volume. If it does not parse, whether it contains the
/// name at all.
fn runs_with(text: &[u8], name: &str) -> bool {
    match serde_json::from_slice::<RunRecord>(text) {
        Ok(record) => record.volumes.iter().any(|volume| volume == name),
        Err(_) => String::from_utf8_lossy(text).contains(name),
    }
}

#[cfg(test)]
mod tests {
    use super::names_volume;

    #[test]
    fn guests_volumes() {
        for (text, want) in [
            ("volumes = [\"pg:/data\"]\n", true),
            ("volumes = [\"a:/a\", 'pg:/data:20G:ro']", true),
            ("volumes = [\"pg2:/data\"]\n", false),
            ("volumes = [\"a:/pg\"]\n", false),
            ("base = \"pg\"\n", false),
            ("volumes = [\"pg:/data\"]\n = nonsense", true),
            ("volumes = [\"a:/data\"]\n = nonsense", false),
        ] {
            assert_eq!(names_volume(text, "pg"), want, "{text:?}");
        }
    }
}
