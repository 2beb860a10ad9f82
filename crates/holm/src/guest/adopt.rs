use super::repair::{Alive, store_state};
use super::start::{Post, in_monitor, responder};
use super::{Error, Result};
use crate::pool::{Name, Pool};
use crate::process::{self, own_pid};
use crate::record::now;
use crate::{launch, monitor};

/// Puts a new monitor beside a running guest whose own has died. The caller holds the guest's lock.
///
/// It is not init's parent: how init ends it learns from the kernel where that tells others (Linux
/// 6.15), and a reboot it cannot tell from a poweroff at all.
pub(super) fn adopt(pool: &Pool, name: &Name, alive: &mut Alive) -> Result<()> {
    let init = alive.state.init().ok_or_else(|| Error::Ended(name.clone()))?;
    let state = &mut alive.state;
    state.adopted = Some(now());
    // A guest that is about to end has lost its interface already.
    let responder = responder(&state.network).unwrap_or(None);
    let child = in_monitor(pool, name, |ready| {
        let console = monitor::console_of(state.init_pid, &init);
        let running = launch::Running { pid: state.init_pid, pidfd: init, console };
        let post = Post::open(pool, name, &alive.cgroup, responder)?;
        let handoff = post.handoff(pool, name, running, None);
        state.monitor_pid = own_pid();
        state.monitor_inode = process::inode(state.monitor_pid);
        store_state(&alive.cgroup, name, state)?;
        ready();
        Ok(monitor::become_monitor(&handoff)?)
    })?;
    alive.state.monitor_pid = child;
    alive.state.monitor_inode = process::inode(child);
    Ok(())
}
