use holm::guest;
use holm::store::Found;
use serde::Serialize;

/// What a unification has done in a guest.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unified {
    /// The guest.
    name: String,
    /// What has become of its files.
    state: State,
    /// Files whose bodies are, or can be, those of objects.
    files: u64,
    /// Bytes of these files.
    size_bytes: u64,
    /// Bytes that the guest takes less on the disk now; the objects that were made are not counted.
    freed_bytes: u64,
    /// Files that were left out because they have changed lately.
    recent_files: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum State {
    /// They are objects now.
    Shared,
    /// They become objects when the guest is started next.
    AtNextStart,
    /// Nothing has changed.
    Unchanged,
}

impl Unified {
    /// From what was found in a guest, and what was done.
    pub fn new(found: &Found, done: &guest::Unified) -> Self {
        let (state, files, freed_bytes) = match done {
            guest::Unified::Done(done) if done.files > 0 => (State::Shared, done.files, done.freed),
            guest::Unified::AtNextStart => (State::AtNextStart, found.files, 0),
            _ => (State::Unchanged, found.files, 0),
        };
        Self {
            name: found.guest.clone(),
            state,
            files,
            size_bytes: found.bytes,
            freed_bytes,
            recent_files: found.recent,
        }
    }
}
