use holm::guest::{self, Summary};
use serde::Serialize;

use super::time::Time;

/// Whether the monitor and the readiness of a guest are as they should be.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// Whether nothing of what follows needs attention: the monitor is there, readiness is not
    /// unknown, and there is neither a problem nor a network notice.
    ok: bool,
    /// The monitor; null if the guest does not run.
    monitor: Option<Monitor>,
    /// When a new monitor was started in the place of one that had died.
    replaced_at: Option<Time>,
    /// Readiness; null if the guest does not run.
    readiness: Option<Readiness>,
    /// How init says that its services are, in its own words (`STATUS=` of `sd_notify(3)`): minimal
    /// init counts those that run, are to be restarted, and have ended, and says how each did that
    /// has ended; systemd says how its start went. Null if the guest does not run, or init has said
    /// nothing that its monitor received. The guest chooses the text.
    services: Option<String>,
    /// What is wrong with its settings or its run record.
    problem: Option<String>,
    /// The ruleset that protects its network had been flushed: whether it was restored, or why not;
    /// or that it could not be looked at.
    network_notice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// the guest has its monitor
    Present,
    /// its first monitor died, and a new one was started
    Replaced,
    /// its monitor died, and another command that works on the guest keeps a new one from being
    /// started
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// init has reported that the guest is ready
    Ready,
    /// init will report it, and has not yet
    Waiting,
    /// this init does not report readiness
    Unsupported,
    /// the first monitor died before init reported it
    Unknown,
}

impl Monitor {
    /// That of a guest, if it runs.
    pub fn of(guest: &Summary) -> Option<Self> {
        let record = guest.record.as_ref()?;
        Some(match record.adopted {
            _ if guest.monitor_missing => Self::Missing,
            Some(_) => Self::Replaced,
            None => Self::Present,
        })
    }

    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Replaced => "replaced",
            Self::Missing => "missing",
        }
    }
}

impl Readiness {
    /// That of a guest, if it runs.
    pub fn of(guest: &Summary) -> Option<Self> {
        Some(match guest.readiness? {
            guest::Readiness::Ready => Self::Ready,
            guest::Readiness::Waiting => Self::Waiting,
            guest::Readiness::Unreported => Self::Unsupported,
            guest::Readiness::Unknown => Self::Unknown,
        })
    }

    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Unsupported => "unsupported",
            Self::Unknown => "unknown",
        }
    }
}

impl From<&Summary> for Health {
    fn from(guest: &Summary) -> Self {
        let (monitor, readiness) = (Monitor::of(guest), Readiness::of(guest));
        let (problem, network_notice) = (guest.problem.clone(), guest.ruleset_notice.clone());
        Self {
            ok: monitor != Some(Monitor::Missing)
                && readiness != Some(Readiness::Unknown)
                && problem.is_none()
                && network_notice.is_none(),
            monitor,
            replaced_at: guest.record.as_ref().and_then(|record| record.adopted).map(Time::new),
            readiness,
            services: guest.status_text.clone(),
            problem,
            network_notice,
        }
    }
}
