use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::reconcile::is_attended;
use super::super::running::{RunningGuest, read_record};
use crate::cgroup::{Figures, Usage};
use crate::config::Config;
use crate::failed::in_one_line;
use crate::net::{self, Counted, LanTraffic, Traffic};
use crate::pool::Name;
use crate::record::{LastRun, RunRecord};

/// What a guest is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does not run.
    Stopped,
    /// Its init runs; it has not reported that it is ready, or cannot.
    Running,
    /// Its init has reported that it is ready.
    Ready,
    /// All its processes are frozen.
    Frozen,
    /// It has been asked to end, or has ended and its monitor has yet to record how.
    Stopping,
    /// It has ended and will be started again.
    Restarting,
    /// It could not be found out: its run record cannot be read, or another look has failed.
    Unknown,
}

/// What is known about the readiness of a running guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Init has reported that the guest is ready.
    Ready,
    /// Init will report it, and has not yet.
    Waiting,
    /// Init never reports it.
    Unreported,
    /// It cannot be known: the guest's first monitor died before init reported it.
    Unknown,
}

/// A guest at a glance.
#[derive(Debug)]
pub struct Summary {
    /// Its name.
    pub name: Name,
    /// What it is doing.
    pub status: Status,
    /// The base it stands on.
    pub base: String,
    /// What it uses, if it runs: the figures that were asked for.
    pub usage: Option<Usage>,
    /// What it has sent and received in this run, if that was asked for and is counted.
    pub traffic: Option<Traffic>,
    /// What passed each of its interfaces in networks of the host's, if that was asked for and is
    /// counted.
    pub lan: Vec<Option<LanTraffic>>,
    /// What its access rules have matched in this run, if that was asked for.
    pub access: Vec<Counted>,
    /// How many processes the kernel killed in this run because the memory limit was reached.
    pub oom_kills: u64,
    /// Its monitor is dead, and no new one could be started, because another command has locked the
    /// guest.
    pub monitor_missing: bool,
    /// Whether it is ready; `None` if it does not run.
    pub readiness: Option<Readiness>,
    /// What init last reported of itself (`STATUS=` of `sd_notify(3)`), in words that the guest
    /// chooses; `None` if that was nothing, or a new monitor would not have received it.
    pub status_text: Option<String>,
    /// The ruleset that protects its network had been flushed: whether it was restored, or why not;
    /// or it could not be looked at.
    pub ruleset_notice: Option<String>,
    /// Its settings; `None` for a guest for one command, and if they have a mistake.
    pub config: Option<Config>,
    /// Its run record, if it runs.
    pub record: Option<RunRecord>,
    /// How its last run ended.
    pub last: Option<LastRun>,
    /// What is wrong with its settings or its run record, if anything.
    pub problem: Option<String>,
}

/// What a guest is doing; `None` if it does not exist. It is not locked, so that `ls` does not wait
/// for a slow start.
pub(super) fn inspect(guest: &Guest<'_>, figures: Figures) -> Result<Option<Summary>> {
    Found::of(guest)?.summary(guest, figures)
}

/// What a guest has on the host, as far as it has been looked at.
pub(super) enum Found {
    /// No cgroup.
    Nothing,
    /// A cgroup without a run record.
    NoRecord,
    /// A run record that cannot be read.
    Unreadable(Error),
    /// A run, which may have ended. The second: whether it has a monitor, if that is known.
    Run(Box<RunningGuest>, Option<bool>),
}

impl Found {
    pub fn of(guest: &Guest<'_>) -> Result<Self> {
        let Some(cgroup) = guest.cgroup()? else { return Ok(Self::Nothing) };
        Ok(match read_record(&cgroup, guest.name()) {
            Err(error @ Error::RecordUnreadable { .. }) => Self::Unreadable(error),
            record => match record? {
                Some(record) => Self::Run(Box::new(RunningGuest { cgroup, record }), None),
                None => Self::NoRecord,
            },
        })
    }

    /// Whether a look at this guest is not enough. Remembers that it has a monitor.
    pub fn may_need_reconciling(&mut self, guest: &Guest<'_>) -> Result<bool> {
        match self {
            // An unreadable record is reported, and `kill` ends the guest.
            Self::Nothing | Self::Unreadable(_) => Ok(false),
            Self::NoRecord => Ok(true),
            Self::Run(found, has_monitor) => {
                let attended = is_attended(guest, &found.record)?;
                *has_monitor = attended.then_some(true);
                Ok(!attended)
            }
        }
    }

    /// What the guest is doing; `None` if it does not exist.
    pub fn summary(self, guest: &Guest<'_>, figures: Figures) -> Result<Option<Summary>> {
        match self {
            Self::Unreadable(error) => Ok(Some(unknown(guest.name(), &error))),
            Self::Nothing | Self::NoRecord => summary_of(guest, None, None, figures),
            Self::Run(found, has_monitor) => summary_of(guest, Some(*found), has_monitor, figures),
        }
    }
}

fn summary_of(
    guest: &Guest<'_>,
    found: Option<RunningGuest>,
    has_monitor: Option<bool>,
    figures: Figures,
) -> Result<Option<Summary>> {
    let name = guest.name();
    let has_dir = guest.has_dir()?;
    let has_monitor = |record: &RunRecord| has_monitor.map_or_else(|| record.has_monitor(), Ok);
    let (populated, frozen) =
        found.as_ref().map_or(Ok((false, false)), |it| it.cgroup.populated_and_frozen())?;
    let (running, ended) = match found {
        Some(found) if populated => (Some(found), false),
        Some(found) => (None, found.record.init_pid != 0 && has_monitor(&found.record)?),
        None => (None, false),
    };
    if !has_dir && running.is_none() {
        return Ok(None);
    }
    let (config, problem) = match has_dir.then(|| guest.config()) {
        None => (None, None),
        Some(Err(error)) => (None, Some(error.to_string())),
        Some(Ok((_, config))) => (Some(config), None),
    };
    let recorded = running.as_ref().map(|it| &it.record.base);
    let base = config.as_ref().map(|config| &config.base).or(recorded).cloned();
    let readiness = running.as_ref().map(readiness_of).transpose()?;
    let monitor_missing =
        running.as_ref().map_or(Ok(false), |it| has_monitor(&it.record).map(|has| !has))?;
    let last = last_run(guest, running.is_some())?;
    let status = match &running {
        Some(running) => status_of(running, frozen, readiness == Some(Readiness::Ready)),
        // One without a monitor has been taken for a failure.
        None if last.as_ref().is_some_and(|last| last.pending.is_some()) => Status::Restarting,
        None if ended => Status::Stopping,
        None => Status::Stopped,
    };
    let usage = running.as_ref().map(|it| it.cgroup.usage(figures)).transpose()?;
    let (traffic, lan, access) = match &running {
        Some(it) if figures == Figures::Traffic => {
            let network = &it.record.network;
            (net::traffic(network)?, net::lan_traffic(network)?, net::counted(network)?)
        }
        _ => (None, Vec::new(), Vec::new()),
    };
    let status_text = running.as_ref().map_or(Ok(None), status_text)?;
    Ok(Some(Summary {
        name: name.clone(),
        status,
        base: base.unwrap_or_default(),
        oom_kills: usage.map_or(0, |usage| usage.oom_kills),
        usage,
        traffic,
        lan,
        access,
        monitor_missing,
        readiness,
        status_text,
        ruleset_notice: None,
        config,
        record: running.map(|it| it.record),
        last,
        problem,
    }))
}

/// Its last run, with what became of the pending restart.
fn last_run(guest: &Guest<'_>, runs: bool) -> Result<Option<LastRun>> {
    let Some(mut last) = guest.last_run()? else { return Ok(None) };
    if runs {
        // The restart has taken place.
        last.pending = None;
    } else if let Some(pending) = &last.pending
        && !pending.has_monitor()?
    {
        last.pending = None;
        last.failure = Some(format!(
            "the monitor that was to start it again is gone; `holm start {}` does",
            guest.name()
        ));
    }
    Ok(Some(last))
}

/// A guest that cannot be looked at.
pub(super) fn unknown(name: &Name, error: &Error) -> Summary {
    Summary {
        name: name.clone(),
        status: Status::Unknown,
        base: String::new(),
        usage: None,
        traffic: None,
        lan: Vec::new(),
        access: Vec::new(),
        oom_kills: 0,
        monitor_missing: false,
        readiness: None,
        status_text: None,
        ruleset_notice: None,
        config: None,
        record: None,
        last: None,
        problem: Some(in_one_line(error)),
    }
}

/// A monitor that adopted the guest receives none of init's messages, so the text could be old.
fn status_text(running: &RunningGuest) -> Result<Option<String>> {
    Ok(match running.record.adopted {
        None => running.cgroup.status_text()?,
        Some(_) => None,
    })
}

fn readiness_of(running: &RunningGuest) -> Result<Readiness> {
    Ok(if running.cgroup.ready()? {
        Readiness::Ready
    } else if !running.record.notifies {
        Readiness::Unreported
    } else if running.record.adopted.is_some() {
        Readiness::Unknown
    } else {
        Readiness::Waiting
    })
}

fn status_of(running: &RunningGuest, frozen: bool, ready: bool) -> Status {
    if running.record.is_stopping() {
        Status::Stopping
    } else if frozen {
        Status::Frozen
    } else if ready {
        Status::Ready
    } else {
        Status::Running
    }
}
