use serde::Serialize;

use super::error::in_one_line;
use super::folder::last;
use super::guard::guard;
use super::repair::state_of;
use super::sweep::{sweep, sweep_one};
use super::{Error, Result, configured};
use crate::cgroup::{GuestCgroup, Usage};
use crate::pool::{Name, Pool};
use crate::record::{LastRun, PendingRestart, RunRecord};

/// What a guest is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing.
    Stopped,
    /// Its init runs, and has not said that it is ready, or cannot.
    Running,
    /// Its init has said that the guest is up.
    Ready,
    /// All its processes stand still.
    Frozen,
    /// It has been asked to end, or has ended and its monitor has yet to say how.
    Stopping,
    /// It has ended and will be started again.
    Restarting,
    /// It has a control group, whose note about it cannot be read.
    Unknown,
}

/// A guest at a glance.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Its name.
    pub name: Name,
    /// What it is doing.
    pub status: Status,
    /// The base it stands on.
    pub base: String,
    /// What it uses, if it runs.
    pub usage: Option<Usage>,
    /// How many processes the kernel killed in this run because the memory limit was reached.
    pub oom_kills: u64,
    /// Its monitor is dead, and another command is at work on the guest: else this look had put a new one in its place.
    pub unwatched: bool,
    /// Whether it is ready cannot be known: its first monitor died before init said so.
    pub unheard: bool,
    /// The rules that guard its network had been flushed; this look made them again, or says why it could not.
    pub unguarded: Option<String>,
    /// More of it, if it runs.
    pub state: Option<RunRecord>,
    /// How its last run ended.
    pub last: Option<LastRun>,
    /// What is wrong with its settings, or with the note about it, if anything.
    pub problem: Option<String>,
}

/// The names of all guests of a root, those of `holm run` among them, sorted.
pub fn names(pool: &Pool) -> Result<Vec<Name>> {
    let mut names = pool.guests()?;
    let running = pool.cgroup()?.guests()?;
    names.extend(running.iter().filter_map(|name| Name::new(name).ok()));
    names.sort();
    names.dedup();
    Ok(names)
}

/// All guests of a root, sorted by name.
pub fn list(pool: &Pool) -> Result<Vec<Summary>> {
    let broken = sweep(pool)?;
    let names = names(pool)?;
    let looked = names.iter().filter_map(|name| look(pool, name).transpose());
    let mut all = looked.collect::<Result<Vec<Summary>>>()?;
    for (name, error) in broken {
        // It may have gone meanwhile.
        if let Some(guest) = all.iter_mut().find(|guest| guest.name == name) {
            guest.problem.get_or_insert(in_one_line(&error));
        }
    }
    guard(pool, &mut all);
    Ok(all)
}

/// One guest.
pub fn summary(pool: &Pool, name: &Name) -> Result<Summary> {
    sweep_one(pool, name)?;
    let Some(mut found) = look(pool, name)? else {
        let known = pool.guests().unwrap_or_default();
        return Err(crate::pool::Error::NoGuest { name: name.clone(), known }.into());
    };
    guard(pool, std::slice::from_mut(&mut found));
    Ok(found)
}

/// Whether a guest runs, or will by itself.
pub fn goes_on(pool: &Pool, name: &Name) -> Result<bool> {
    sweep_one(pool, name)?;
    // A monitor notes an end, which is when this is asked, before all of the guest is gone, under this lock.
    let _lock = pool.lock_guest(name)?;
    Ok(look(pool, name)?.is_some_and(|guest| guest.status != Status::Stopped))
}

/// How many processes the kernel has killed because a guest had reached its memory limit: in the run that goes on, and
/// in the last that ended.
pub fn oom_kills(pool: &Pool, name: &Name) -> Result<(u64, u64)> {
    let guest = look(pool, name)?;
    let last = |guest: &Summary| guest.last.as_ref().map_or(0, |last| last.oom_kills);
    Ok(guest.map_or((0, 0), |guest| (guest.oom_kills, last(&guest))))
}

/// Looks without a lock: `ls` must not wait for a start that takes its time.
fn look(pool: &Pool, name: &Name) -> Result<Option<Summary>> {
    let folder = pool.guest_dir(name).is_dir();
    let cgroup = GuestCgroup::open(pool.cgroup()?, name.as_str())?;
    let found = match cgroup.map(|cgroup| (state_of(&cgroup, name), cgroup)) {
        Some((Err(error @ Error::State { .. }), _)) => return Ok(Some(unknown(name, &error))),
        Some((state, cgroup)) => state?.map(|state| (cgroup, state)),
        None => None,
    };
    let (running, ended) = match found {
        Some((cgroup, state)) if cgroup.populated().unwrap_or(false) => {
            (Some((cgroup, state)), false)
        }
        Some((_, state)) => (None, state.init_pid != 0 && state.is_watched()),
        None => (None, false),
    };
    if !folder && running.is_none() {
        return Ok(None);
    }
    let (base, problem) = match (&running, folder.then(|| configured(pool, name))) {
        (Some((_, state)), None) => (state.base.clone(), None),
        (Some((_, state)), Some(Err(error))) => (state.base.clone(), Some(error.to_string())),
        (_, Some(Ok((_, config)))) => (config.base, None),
        (None, Some(Err(error))) => (String::new(), Some(error.to_string())),
        (None, None) => unreachable!("neither a folder nor a control group"),
    };
    let mut last = last(pool, name);
    if let Some(last) = &mut last {
        if running.is_some() {
            // The start that followed has taken place.
            last.pending = None;
        } else if last.pending.take_if(|pending| !pending.stands()).is_some() {
            last.failure = Some(format!(
                "the monitor that was to start it again is gone; `holm start {name}` does"
            ));
        }
    }
    let status = match &running {
        Some((cgroup, state)) => status_of(cgroup, state),
        None if last
            .as_ref()
            .is_some_and(|last| last.pending.as_ref().is_some_and(PendingRestart::stands)) =>
        {
            Status::Restarting
        }
        None if ended => Status::Stopping,
        None => Status::Stopped,
    };
    Ok(Some(Summary {
        name: name.clone(),
        status,
        base,
        usage: running.as_ref().and_then(|(cgroup, _)| cgroup.usage().ok()),
        oom_kills: running.as_ref().and_then(|(cgroup, _)| cgroup.oom_kills().ok()).unwrap_or(0),
        unwatched: running.as_ref().is_some_and(|(_, state)| !state.is_watched()),
        unheard: status == Status::Running
            && running.as_ref().is_some_and(|(_, state)| state.notifies && state.adopted.is_some()),
        unguarded: None,
        state: running.map(|(_, state)| state),
        last,
        problem,
    }))
}

/// A guest that one cannot tell more of.
fn unknown(name: &Name, error: &Error) -> Summary {
    Summary {
        name: name.clone(),
        status: Status::Unknown,
        base: String::new(),
        usage: None,
        oom_kills: 0,
        unwatched: false,
        unheard: false,
        unguarded: None,
        state: None,
        last: None,
        problem: Some(in_one_line(error)),
    }
}

fn status_of(cgroup: &GuestCgroup, state: &RunRecord) -> Status {
    if state.is_stopping() {
        Status::Stopping
    } else if cgroup.frozen().unwrap_or(false) {
        Status::Frozen
    } else if cgroup.ready().unwrap_or(false) {
        Status::Ready
    } else {
        Status::Running
    }
}
