use std::path::PathBuf;

use serde::Serialize;

use super::last_run::LastRun;

/// What was made, changed or removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Named {
    /// The name that was given.
    pub name: String,
}

/// A guest that was removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemovedGuest {
    /// The guest.
    pub name: String,
    /// Its volumes that are still there.
    pub kept_volumes: Vec<String>,
    /// Its volumes that were removed with it (`--volumes`).
    pub removed_volumes: Vec<String>,
}

/// A guest that was started.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ready {
    /// The guest.
    pub name: String,
    /// With `--wait`: true once it is ready, false if its init never reports that. Without: null.
    pub ready: Option<bool>,
}

/// A guest that was stopped.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Killed {
    /// The guest.
    pub name: String,
    /// Whether it had to be killed, because it did not end in time.
    pub killed: bool,
}

/// A guest that was sent a signal.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Signalled {
    /// The guest.
    pub name: String,
    /// The signal: `SIGKILL` to all its processes, another to its init; null if it did not run,
    /// which is no error with `--all`.
    pub signal: Option<String>,
}

/// A guest whose root was replaced.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rebuilt {
    /// The guest.
    pub name: String,
    /// The base that it stands on now.
    pub base: String,
}

/// A guest that was renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Renamed {
    /// Its new name.
    pub name: String,
    /// Its old name.
    pub old_name: String,
}

/// A guest that has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Waited {
    /// The guest.
    pub name: String,
    /// How its run ended.
    pub last_run: LastRun,
}

/// A Holm root that was released.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Released {
    /// The Holm root.
    pub root: PathBuf,
}
