/// The state of a feature on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is there.
    Ok,
    /// It is there in part, or in a worse way.
    Degraded,
    /// It is not there.
    Missing,
}

/// What a probe found, with a sentence that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Yes(String),
    Partly(String),
    No(String),
    /// It could not be tried, for a reason that is not the feature's.
    Untried(String),
}

/// One line of `holm doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The feature's name.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// Whether no guest can start without it.
    pub needed: bool,
    /// What the user cannot do without it. Empty when the feature is there.
    pub cost: &'static str,
    /// A command, or what else to do, that mends it. Empty when the feature is there.
    pub remedy: &'static str,
}

impl Answer {
    /// Yes or no, from a probe that returns its sentence as a result.
    pub(super) fn from(result: Result<String, String>) -> Self {
        match result {
            Ok(detail) => Self::Yes(detail),
            Err(detail) => Self::No(detail),
        }
    }
}
