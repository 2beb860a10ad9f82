use super::super::error::Result;
use super::super::handle::Guest;
use super::super::reconcile::{release_unowned, restore_ruleset, sweep_one};
use super::summary::{Found, Status, Summary, inspect, unknown};
use crate::failed::in_one_line;
use crate::pool::{Name, Pool};

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
    pool.clean_tmp();
    let taken = pool.allocated_ids()?;
    let names = names(pool)?;
    let found = names.iter().filter_map(|name| {
        // One guest that cannot be looked at must not hide the others.
        let inspected = reconciled(&Guest::new(pool, name));
        inspected.unwrap_or_else(|error| Some(unknown(name, &error)))
    });
    let mut all: Vec<Summary> = found.collect();
    release_unowned(pool, &taken, &names);
    check_ruleset(pool, &mut all);
    Ok(all)
}

/// What a guest is doing, after it has been reconciled. Where there is nothing to reconcile it is
/// looked at only once: with many guests that is most of the work.
fn reconciled(guest: &Guest<'_>) -> Result<Option<Summary>> {
    let mut found = Found::of(guest)?;
    let mut failed = None;
    if found.may_need_reconciling(guest)? {
        failed = sweep_one(guest).err();
        found = Found::of(guest)?;
    }
    let mut summary = found.summary(guest)?;
    if let (Some(summary), Some(error)) = (&mut summary, failed) {
        summary.problem.get_or_insert(in_one_line(&error));
    }
    Ok(summary)
}

/// One guest.
pub fn summary(guest: &Guest<'_>) -> Result<Summary> {
    sweep_one(guest)?;
    let Some(mut found) = inspect(guest)? else { return Err(guest.missing()?) };
    check_ruleset(guest.pool(), std::slice::from_mut(&mut found));
    Ok(found)
}

/// Whether a guest runs or has a pending restart.
pub fn is_active(guest: &Guest<'_>) -> Result<bool> {
    sweep_one(guest)?;
    // Waits for a monitor that is recording the end of the run, which it does under this lock.
    let _locked = guest.lock()?;
    Ok(inspect(guest)?.is_some_and(|found| found.status != Status::Stopped))
}

/// How many processes the kernel has killed because a guest had reached its memory limit: in the
/// current run, and in the last.
pub fn oom_kills(guest: &Guest<'_>) -> Result<(u64, u64)> {
    let found = inspect(guest)?;
    let last = |found: &Summary| found.last.as_ref().map_or(0, |last| last.oom_kills);
    Ok(found.map_or((0, 0), |found| (found.oom_kills, last(&found))))
}

/// Restores the ruleset if it is missing, and adds a notice to the summaries of the guests that it
/// protects.
fn check_ruleset(pool: &Pool, guests: &mut [Summary]) {
    let running: Vec<_> =
        guests.iter().filter_map(|guest| Some((&guest.name, guest.record.as_ref()?))).collect();
    let Some(notice) = restore_ruleset(pool, &running) else { return };
    for guest in guests.iter_mut().filter(|guest| notice.guests.contains(&guest.name)) {
        guest.ruleset_notice = Some(notice.text.clone());
    }
}
