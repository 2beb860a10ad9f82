use super::{Status, Summary};
use crate::net;
use crate::pool::Pool;
use crate::record::now;

/// A guest of one command may be in the making for this long, in seconds.
const MAKING: u64 = 10;

/// Makes the packet filter's rules again if somebody has flushed them while private guests run: without them guests are
/// neither hidden nor kept from the host's loopback services. One question to the kernel, however many guests there are.
pub(super) fn guard(pool: &Pool, guests: &mut [Summary]) {
    let is_private =
        |guest: &Summary| guest.state.as_ref().is_some_and(|state| net::has_veth(&state.network));
    if !guests.iter().any(is_private) || net::has_rules(pool.instance()).unwrap_or(true) {
        return;
    }
    let mut bare: Vec<&mut Summary> = guests.iter_mut().filter(|g| is_bare(pool, g)).collect();
    if bare.is_empty() {
        return;
    }
    let text = match net::restore_rules(pool.instance()) {
        // Another command was faster, and says so.
        Ok(false) => return,
        Ok(true) => "the packet filter's rules had been flushed, and are there again; until now \
                     private guests were neither hidden nor guarded"
            .to_owned(),
        Err(error) => format!(
            "the packet filter's rules have been flushed, and private guests are neither hidden nor guarded: {}",
            super::error::in_one_line(&error)
        ),
    };
    for guest in &mut bare {
        guest.unguarded = Some(text.clone());
    }
}

/// Whether a private guest runs in this network namespace and its start is over: one that is being started has its
/// interface before its rules.
fn is_bare(pool: &Pool, guest: &Summary) -> bool {
    let Some(state) = &guest.state else { return false };
    let started = if state.ephemeral {
        now().saturating_sub(state.started) > MAKING
    } else {
        pool.try_lock_guest(&guest.name).is_ok_and(|lock| lock.is_some())
    };
    net::has_veth(&state.network)
        && guest.status != Status::Stopping
        && started
        && net::is_attached(&state.network).unwrap_or(false)
}
