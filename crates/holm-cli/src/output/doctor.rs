use holm::host::{self, Finding};
use serde::Serialize;

/// What this machine can do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Whether guests can run here, as far as the features below tell.
    ok: bool,
    /// The features, in the order of `holm doctor`.
    features: Vec<Feature>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Feature {
    /// Its name; it stays.
    name: &'static str,
    /// How it stands on this host.
    state: State,
    /// What was found.
    detail: String,
    /// Whether no guest can start without it.
    needed: bool,
    /// What cannot be done as it is; null when it is there.
    cost: Option<&'static str>,
    /// What to do about it; null when it is there.
    remedy: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum State {
    /// it is there
    Ok,
    /// it is there in part, or in a worse way
    Degraded,
    /// it is not there
    Missing,
}

impl Report {
    /// The findings of probes.
    pub fn new(ok: bool, findings: Vec<Finding>) -> Self {
        Self { ok, features: findings.into_iter().map(Feature::from).collect() }
    }
}

impl From<Finding> for Feature {
    fn from(finding: Finding) -> Self {
        let state = match finding.state {
            host::State::Ok => State::Ok,
            host::State::Degraded => State::Degraded,
            host::State::Missing => State::Missing,
        };
        let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        Self {
            name: finding.name,
            state,
            detail: finding.detail,
            needed: finding.needed,
            cost: text(finding.cost),
            remedy: text(finding.remedy),
        }
    }
}
