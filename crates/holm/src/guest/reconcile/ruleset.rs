use super::super::handle::Guest;
use super::START_MAX;
use crate::failed::in_one_line;
use crate::net;
use crate::pool::{Name, Pool};
use crate::record::{RunRecord, now};

/// Tells that the ruleset had been flushed.
#[derive(Debug)]
pub struct RulesetNotice {
    /// Whether it was restored or could not be, as a sentence.
    pub text: String,
    /// The guests that it protects.
    pub guests: Vec<Name>,
}

/// Restores the ruleset if it was flushed while private guests run: without it they are isolated
/// neither from each other nor from the host's loopback services. The check is one request to the
/// kernel, however many guests there are.
pub fn restore_ruleset(pool: &Pool, running: &[(&Name, &RunRecord)]) -> Option<RulesetNotice> {
    let is_private = |record: &RunRecord| net::has_veth(&record.network);
    if !running.iter().any(|(_, record)| is_private(record))
        || net::has_ruleset(pool.instance()).unwrap_or(true)
    {
        return None;
    }
    let unprotected = running.iter().filter(|(name, record)| {
        is_private(record) && needs_ruleset(&Guest::new(pool, name), record)
    });
    let guests: Vec<Name> = unprotected.map(|(name, _)| (*name).clone()).collect();
    if guests.is_empty() {
        return None;
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
fn needs_ruleset(guest: &Guest<'_>, record: &RunRecord) -> bool {
    let started = if record.ephemeral {
        now().saturating_sub(record.started) > START_MAX
    } else {
        guest.try_lock().is_ok_and(|lock| lock.is_some())
    };
    !record.is_stopping() && started && net::is_attached(&record.network).unwrap_or(false)
}
