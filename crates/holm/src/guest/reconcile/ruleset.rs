use super::super::error::in_one_line;
use super::super::handle::Guest;
use crate::net;
use crate::pool::{Name, Pool};
use crate::record::{RunRecord, now};

/// A guest of one command may be in the making for this long, in seconds.
const MAKING: u64 = 10;

/// What is to be said of a ruleset that had been flushed, and the guests whom that concerns.
#[derive(Debug)]
pub struct RulesetNotice {
    pub text: String,
    pub guests: Vec<Name>,
}

/// Makes the ruleset again if somebody has flushed it while private guests run: without it guests are
/// neither hidden nor kept from the host's loopback services. One question to the kernel, however many guests there are.
pub fn restore_ruleset(pool: &Pool, running: &[(&Name, &RunRecord)]) -> Option<RulesetNotice> {
    let is_private = |record: &RunRecord| net::has_veth(&record.network);
    if !running.iter().any(|(_, record)| is_private(record))
        || net::has_ruleset(pool.instance()).unwrap_or(true)
    {
        return None;
    }
    let unguarded = running.iter().filter(|(name, record)| {
        is_private(record) && needs_ruleset(&Guest::new(pool, name), record)
    });
    let guests: Vec<Name> = unguarded.map(|(name, _)| (*name).clone()).collect();
    if guests.is_empty() {
        return None;
    }
    let text = match net::restore_ruleset(pool.instance()) {
        // Another command was faster, and says so.
        Ok(false) => return None,
        Ok(true) => "the packet filter's rules had been flushed, and are there again; until now \
                     private guests were neither hidden nor guarded"
            .to_owned(),
        Err(error) => format!(
            "the packet filter's rules have been flushed, and private guests are neither hidden nor guarded: {}",
            in_one_line(&error)
        ),
    };
    Some(RulesetNotice { text, guests })
}

/// Whether a private guest runs in this network namespace and its start is over: one that is being started has its
/// interface before its rules.
fn needs_ruleset(guest: &Guest<'_>, record: &RunRecord) -> bool {
    let started = if record.one_command {
        now().saturating_sub(record.started) > MAKING
    } else {
        guest.try_lock().is_ok_and(|lock| lock.is_some())
    };
    !record.is_stopping() && started && net::is_attached(&record.network).unwrap_or(false)
}
