use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::START_MAX;
use crate::failed::in_one_line;
use crate::net;
use crate::pool::{self, Name, Pool};
use crate::record::{RunRecord, now};

/// Tells that the ruleset had been flushed, or that a look at it has failed.
#[derive(Debug)]
pub struct RulesetNotice {
    /// Whether it was restored or could not be, or why that is not known, as a sentence.
    pub text: String,
    /// The guests that it protects.
    pub guests: Vec<Name>,
}

/// Restores the ruleset if it was flushed while private guests run: without it they are isolated
/// neither from each other nor from the host's loopback services. The check is one request to the
/// kernel, however many guests there are.
pub fn restore_ruleset(pool: &Pool, running: &[(&Name, &RunRecord)]) -> Option<RulesetNotice> {
    let private = || running.iter().filter(|(_, record)| net::has_veth(&record.network));
    private().next()?;
    let unknown = |guests: Vec<Name>, error: &dyn std::error::Error| RulesetNotice {
        text: format!("it is not known whether the ruleset is loaded: {}", in_one_line(error)),
        guests,
    };
    match net::has_ruleset(pool.instance()) {
        Ok(true) => return None,
        Ok(false) => {}
        Err(error) => {
            return Some(unknown(private().map(|(name, _)| (*name).clone()).collect(), &error));
        }
    }
    let (mut guests, mut failed) = (Vec::new(), None);
    for (name, record) in private() {
        match needs_ruleset(&Guest::new(pool, name), record) {
            Ok(true) => guests.push((*name).clone()),
            Ok(false) => {}
            Err(error) => failed = failed.or(Some(((*name).clone(), error))),
        }
    }
    if guests.is_empty() {
        return failed.map(|(name, error)| unknown(vec![name], &error));
    }
    let text = match net::restore_ruleset(pool.instance()) {
        // Another command has restored it and reports that.
        Ok(false) => return None,
        Ok(true) => "the ruleset had been flushed and was restored; until now \
                     private guests were not isolated"
            .to_owned(),
        Err(error) => format!(
            "the ruleset has been flushed, and private guests are not isolated: {}",
            in_one_line(&error)
        ),
    };
    Some(RulesetNotice { text, guests })
}

/// Whether a private guest is attached to this network namespace and its start is complete: a start
/// makes the interface before the rules.
fn needs_ruleset(guest: &Guest<'_>, record: &RunRecord) -> Result<bool> {
    let started = if record.ephemeral {
        now().saturating_sub(record.started) > START_MAX
    } else {
        match guest.try_lock() {
            // Removed since it was looked at.
            Err(Error::Pool(pool::Error::NoGuest { .. })) => false,
            lock => lock?.is_some(),
        }
    };
    Ok(!record.is_stopping() && started && net::is_attached(&record.network)?)
}
