use super::process;
use super::repair::{Alive, store_state};
use super::start::{in_monitor, own_pid, own_program, readable, responder};
use super::state::now;
use super::{Error, Result};
use crate::monitor;
use crate::pool::{Name, Pool};

/// Puts a new monitor beside a running guest whose own has died. The caller holds the guest's lock.
///
/// It is not init's parent: how init ends it learns from the kernel where that tells others (Linux
/// 6.15), and a reboot it cannot tell from a poweroff at all.
pub(super) fn adopt(pool: &Pool, name: &Name, alive: &mut Alive) -> Result<()> {
    let init = alive.state.init().ok_or_else(|| Error::Ended(name.clone()))?;
    let state = &mut alive.state;
    state.adopted = Some(now());
    let cgroup = readable(&alive.cgroup)?;
    let run_dir = pool.guest_run_dir(name);
    std::fs::create_dir_all(&run_dir)
        .map_err(|error| Error::io("make the folder", &run_dir, error))?;
    let holm = own_program()?;
    let folder = pool.guest_dir(name);
    let guest = monitor::Running {
        name: name.as_str(),
        root: pool.root(),
        holm: &holm,
        pid: state.pid,
        init,
        cgroup,
        folder: &folder,
        run_dir: &run_dir,
        console: true,
        // A guest that is about to end has lost its interface already.
        responder: responder(&state.net).unwrap_or(None),
    };
    let child = in_monitor(pool, name, |ready| {
        let (handoff, _) = monitor::adopt(guest)?;
        state.monitor = own_pid();
        state.monitor_inode = process::inode(state.monitor);
        store_state(&alive.cgroup, name, state)?;
        ready();
        Ok(monitor::become_monitor(&handoff)?)
    })?;
    alive.state.monitor = child;
    alive.state.monitor_inode = process::inode(child);
    Ok(())
}
