use std::num::NonZero;
use std::thread::Builder;

use super::super::error::Result;
use super::super::handle::Guest;
use super::super::reconcile::{
    bound_connections, release_unowned, restore, restore_ruleset, sweep_one,
};
use super::summary::{Found, Status, Summary, inspect, unknown};
use crate::cgroup::Figures;
use crate::failed::in_one_line;
use crate::pool::{Name, Pool};
use crate::rootfs::remove_all_unused;

/// The names of all guests of a root, those of `holm run` among them, sorted.
pub fn names(pool: &Pool) -> Result<Vec<Name>> {
    let mut names = pool.guests()?;
    let running = pool.cgroup()?.guests()?;
    names.extend(running.iter().filter_map(|name| Name::new(name).ok()));
    names.sort();
    names.dedup();
    Ok(names)
}

/// All guests of a root, sorted by name, with these figures of what they use.
pub fn list(pool: &Pool, figures: Figures) -> Result<Vec<Summary>> {
    pool.clean_tmp();
    let taken = pool.allocated_ids()?;
    let names = names(pool)?;
    let looks = look_at_all(pool, &names, figures);
    let found = names.iter().zip(looks).filter_map(|(name, look)| {
        let inspected = look.and_then(|look| match look {
            Look::Done(summary) => Ok(summary.map(|summary| *summary)),
            Look::Unreconciled => reconciled(&Guest::new(pool, name), figures),
        });
        // One guest that cannot be looked at must not hide the others.
        inspected.unwrap_or_else(|error| Some(unknown(name, &error)))
    });
    let mut all: Vec<Summary> = found.collect();
    release_unowned(pool, &taken, &names);
    if let Err(error) = remove_all_unused(&pool.images_dir()) {
        pool.report_repair(&in_one_line(&error));
    }
    check_ruleset(pool, &mut all);
    Ok(all)
}

/// What a look at a guest that changes nothing has found.
enum Look {
    /// What it is doing; `None` if it does not exist.
    Done(Option<Box<Summary>>),
    /// It may need reconciling.
    Unreconciled,
}

/// How many guests are worth a thread: starting one costs as much as looking at two.
const GUESTS_PER_THREAD: usize = 50;

/// Looks at guests, on all CPUs if there are many. The threads are gone when it returns: what is
/// found to need a new monitor must get it from a process with a single thread.
fn look_at_all(pool: &Pool, names: &[Name], figures: Figures) -> Vec<Result<Look>> {
    let look_at = |names: &[Name]| -> Vec<Result<Look>> {
        names.iter().map(|name| look(&Guest::new(pool, name), figures)).collect()
    };
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cpus.min(names.len() / GUESTS_PER_THREAD).max(1);
    let mut parts = names.chunks(names.len().div_ceil(threads).max(1));
    let first = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|part| (part, Builder::new().spawn_scoped(scope, move || look_at(part))))
            .collect();
        let mut looks = look_at(first);
        for (part, thread) in others {
            // Without a thread, or after its panic, here.
            let found = thread.ok().and_then(|thread| thread.join().ok());
            looks.extend(found.unwrap_or_else(move || look_at(part)));
        }
        looks
    })
}

/// Looks at a guest once, if it needs no reconciling: with many guests that is most of the work.
fn look(guest: &Guest<'_>, figures: Figures) -> Result<Look> {
    let mut found = Found::of(guest)?;
    if found.may_need_reconciling(guest)? {
        return Ok(Look::Unreconciled);
    }
    Ok(Look::Done(found.summary(guest, figures)?.map(Box::new)))
}

/// What a guest is doing, after it has been reconciled.
fn reconciled(guest: &Guest<'_>, figures: Figures) -> Result<Option<Summary>> {
    let failed = sweep_one(guest).err();
    let mut summary = inspect(guest, figures)?;
    if let (Some(summary), Some(error)) = (&mut summary, failed) {
        summary.problem.get_or_insert(in_one_line(&error));
    }
    Ok(summary)
}

/// One guest.
pub fn summary(guest: &Guest<'_>) -> Result<Summary> {
    sweep_one(guest)?;
    let Some(mut found) = inspect(guest, Figures::Traffic)? else { return Err(guest.missing()?) };
    check_ruleset(guest.pool(), std::slice::from_mut(&mut found));
    Ok(found)
}

/// Whether a guest runs or has a pending restart.
pub fn is_active(guest: &Guest<'_>) -> Result<bool> {
    sweep_one(guest)?;
    // Waits for a monitor that is recording the end of the run, which it does under this lock.
    let _locked = guest.lock()?;
    Ok(inspect(guest, Figures::Current)?.is_some_and(|found| found.status != Status::Stopped))
}

/// How many processes the kernel has killed because a guest had reached its memory limit: in the
/// current run, and in the last, where `None` means that it is not known.
pub fn oom_kills(guest: &Guest<'_>) -> Result<(u64, Option<u64>)> {
    let found = inspect(guest, Figures::Current)?;
    let last = |found: &Summary| found.last.as_ref().map_or(Some(0), |last| last.oom_kills);
    Ok(found.map_or((0, Some(0)), |found| (found.oom_kills, last(&found))))
}

/// Restores the ruleset, access rules and rates if they are missing, and adds a notice to the
/// summaries of the guests that they protect.
fn check_ruleset(pool: &Pool, guests: &mut [Summary]) {
    let running: Vec<_> =
        guests.iter().filter_map(|guest| Some((&guest.name, guest.record.as_ref()?))).collect();
    let notice = restore_ruleset(pool, &running);
    bound_connections(pool, &running);
    for guest in guests {
        let common = notice.as_ref().filter(|notice| notice.guests.contains(&guest.name));
        let common = common.map(|notice| notice.text.clone());
        let record = guest.record.as_ref();
        let own = record.and_then(|record| restore(&Guest::new(pool, &guest.name), record));
        guest.ruleset_notice = match (common, own) {
            (Some(common), Some(own)) => Some(format!("{common}; {own}")),
            (common, own) => common.or(own),
        };
    }
}
