//! One attempt to start a guest, and what it makes.

use std::os::fd::OwnedFd;

use super::decision::Decision;
use super::error::{Result, in_one_line};
use super::init_program::init_program;
use super::limits::limits;
use super::machine_id::mark_started;
use super::running::write_record;
use crate::cgroup::GuestCgroup;
use crate::launch::{self, Assembled, Running, Spec, Stdio};
use crate::net;
use crate::process::{self, own_pid};
use crate::rootfs::Layers;
use crate::step;

/// A guest about to be started: everything is decided, and its control group is made.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub decision: Decision<'a>,
    pub cgroup: GuestCgroup,
}

impl<'a> Attempt<'a> {
    /// Makes the guest's control group. From here on a guest without a directory can be found, and tells whose it is.
    pub fn begin(decision: Decision<'a>) -> Result<Self> {
        let Decision { guest, ids, .. } = &decision;
        let owner = (ids.base, ids.base);
        let limits = limits(&decision.config);
        let pool = guest.pool().cgroup()?;
        let cgroup = GuestCgroup::create(pool, guest.name().as_str(), &limits, owner)?;
        let attempt = Self { decision, cgroup };
        step::done("cgroup");
        attempt.record(0, own_pid())?;
        step::done("record");
        Ok(attempt)
    }

    /// Makes the guest up to its init, which waits. `notify` is bound in the guest, `monitor` is recorded.
    pub fn assemble(
        &self,
        stdio: Stdio,
        notify: Option<&OwnedFd>,
        monitor: i32,
    ) -> Result<Assembled> {
        let decision = &self.decision;
        let (guest, config) = (&decision.guest, &decision.config);
        let init = decision.init(stdio, notify.is_some())?;
        let needed = decision.is_minimal() && !init.in_place;
        let minimal_init = if needed { Some(init_program(guest.pool())?) } else { None };
        let record = |pid| self.record(pid, monitor).map_err(|error| in_one_line(&error));
        Ok(launch::assemble(&Spec {
            pool: guest.pool(),
            ids: decision.ids,
            layers: Layers { image: &decision.base.image, upper: decision.layer.upper() },
            cgroup: &self.cgroup,
            net: &decision.network,
            shm: config.memory.shm,
            rlimits: &decision.rlimits(),
            devices: &config.devices,
            binds: &config.mounts,
            files: &decision.files(stdio),
            minimal_init,
            // A guest of one command starts on an empty private layer: its /run is as empty.
            run: decision.layer.is_kept(),
            notify,
            init,
            record: &record,
        })?)
    }

    /// Releases init.
    pub fn release(&self, assembled: Assembled) -> Result<Running> {
        let running = assembled.release()?;
        let decision = &self.decision;
        if decision.is_first && decision.layer.is_kept() {
            mark_started(&decision.guest);
        }
        Ok(running)
    }

    /// Removes what is left when init has ended. The interface is not waited for: it goes with the guest's network
    /// namespace, some tens of milliseconds later.
    pub fn clean_up(self) {
        let _ = self.cgroup.kill();
        let _ = net::end(&self.decision.network);
        let _ = self.cgroup.remove();
    }

    /// Removes what a failed attempt has made.
    pub fn undo(self) {
        let _ = self.cgroup.kill();
        let _ = net::detach(&self.decision.network);
        let _ = self.cgroup.remove();
    }

    fn record(&self, init: i32, monitor: i32) -> Result<()> {
        let identity = |pid| (pid, process::inode(pid));
        let record = self.decision.record(identity(init), identity(monitor));
        write_record(&self.cgroup, self.decision.guest.name(), &record)
    }
}
