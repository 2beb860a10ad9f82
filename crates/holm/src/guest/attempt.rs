//! A start in progress, and undoing one that has failed.

use std::os::fd::OwnedFd;

use super::decision::Decision;
use super::error::{Error, Result};
use super::flow_record::{record_begin, record_end};
use super::init_program::init_program;
use super::limits::limits;
use super::machine_id::mark_started;
use super::running::write_record;
use crate::cgroup::GuestCgroup;
use crate::failed::in_one_line;
use crate::launch::{self, Assembled, Assembly, FilterLoader, Running, Spec, Stdio};
use crate::net;
use crate::process::{self, HeldConsole, own_pid};
use crate::rootfs::{self, SharedImage, Sources};
use crate::step;
use crate::volume;

/// A start in progress: everything is decided, and the guest's cgroup is made.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub decision: Decision<'a>,
    pub cgroup: GuestCgroup,
    /// A terminal that is held for its console.
    pub held: Option<HeldConsole>,
    image: Option<SharedImage>,
    /// Keeps its volumes from being removed until the run record names them, and longer.
    _volumes: Vec<volume::Pin>,
}

impl<'a> Attempt<'a> {
    /// Makes the guest's cgroup and writes the run record. From here on other
    /// commands see an ephemeral guest, which has no directory.
    pub fn begin(decision: Decision<'a>) -> Result<Self> {
        decision.plain_root()?;
        let volumes = decision.volumes()?;
        let Decision { guest, ids, .. } = &decision;
        let owner = (ids.base, ids.base);
        let limits = limits(&decision.config);
        let pool = guest.pool().cgroup()?;
        let cgroup = GuestCgroup::create(pool, guest.name().as_str(), &limits, owner)?;
        let image = match decision.shared_image() {
            Ok(image) => image,
            Err(error) => {
                let _ = cgroup.remove();
                return Err(error);
            }
        };
        let attempt = Self { decision, cgroup, held: None, image, _volumes: volumes };
        step::done("cgroup");
        attempt.record(0, own_pid())?;
        step::done("record");
        if let Err(error) = attempt.admit() {
            attempt.undo();
            return Err(error);
        }
        Ok(attempt)
    }

    /// Gives a native guest its addresses. After the run record is written, so that whoever cleans
    /// up after a killed start takes them back.
    fn admit(&self) -> Result<()> {
        let Decision { guest, network, ids, .. } = &self.decision;
        record_begin(guest, network);
        let pool = || Ok::<_, Error>(guest.pool().cgroup()?.open()?);
        net::admit(network, pool, self.cgroup.dir_fd(), ids.base)?;
        step::done("net-admit");
        Ok(())
    }

    /// Launches the guest by `launch`, which assembles and releases it. Init loads its own filter,
    /// which costs no time; where guests have used up the memory for compiled filters, a helper
    /// does.
    pub fn launch<T>(&self, launch: impl Fn(FilterLoader) -> Result<T>) -> Result<T> {
        match launch(FilterLoader::Init) {
            Err(Error::Launch(launch::Error::Process(process::Error::Filter(_)))) => {
                // The interface may still be there, without published ports of others.
                net::detach(&self.decision.network)?;
                launch(FilterLoader::Helper)
            }
            launched => launched,
        }
    }

    /// Assembles the guest and clones its init, which waits to be released. `notify` is bound in
    /// the guest; `monitor` is recorded.
    pub fn assemble(
        &self,
        stdio: Stdio,
        notify: Option<&OwnedFd>,
        monitor: i32,
        filter: FilterLoader,
    ) -> Result<Assembled> {
        let decision = &self.decision;
        let (guest, config) = (&decision.guest, &decision.config);
        let init = decision.init(stdio, notify.is_some())?;
        let executes_minimal = decision.is_minimal() && !init.in_place;
        let init_file = if executes_minimal { Some(init_program(guest.pool())?) } else { None };
        let record = |pid| self.record(pid, monitor).map_err(|error| in_one_line(&error));
        let (stage, objects) = (guest.pool().stage_dir(), guest.pool().objects_dir());
        let sources = Sources {
            stage: &stage,
            layers: decision.layers(&objects),
            base: decision.ids.base,
            shm: config.memory.shm,
            devices: &config.devices,
            binds: &decision.binds(),
            volumes: &volume::mounts(guest.pool(), &config.volumes)?,
            init_program: init_file.as_deref(),
            writable: decision.layer.is_writable(),
            persistent: decision.layer.is_persistent(),
            host_network: !net::has_own_namespace(&decision.network),
            nesting: config.security.nesting,
        };
        let assembly = Assembly {
            ids: decision.ids,
            sources,
            files: &decision.files(stdio),
            notify,
            net: &decision.network,
        };
        let mount = self.image.as_ref().map(|image| move || decision.copy_image_mount(image));
        let rlimits = decision.rlimits();
        let cgroup = &self.cgroup;
        let (rlimits, record) = (&rlimits, &record);
        Ok(launch::spawn(&Spec {
            assembly,
            cgroup,
            rlimits,
            init,
            filter,
            record,
            image: mount.as_ref().map(|mount| mount as _),
            held: self.held.as_ref(),
        })?)
    }

    /// Releases init.
    pub fn release(&self, assembled: Assembled) -> Result<Running> {
        let running = assembled.release()?;
        let decision = &self.decision;
        if decision.is_first && !decision.ephemeral {
            mark_started(&decision.guest);
            decision.layer.mark_started();
        }
        net::after_release(&decision.network)?;
        Ok(running)
    }

    /// Cleans up after init has ended. Does not wait for the interface, which disappears with the
    /// guest's network namespace some tens of milliseconds later.
    pub fn clean_up(self) {
        let _ = self.cgroup.kill();
        let _ = net::clean_up(&self.decision.network);
        let _ = net::dismiss(&self.decision.network, self.cgroup.dir_fd());
        record_end(&self.decision.guest, &self.decision.network);
        self.let_go();
    }

    /// Undoes a failed start. Init may still be in its network namespace, so the interface is
    /// removed explicitly.
    pub fn undo(self) {
        let _ = self.cgroup.kill();
        let _ = net::detach(&self.decision.network);
        let _ = net::dismiss(&self.decision.network, self.cgroup.dir_fd());
        record_end(&self.decision.guest, &self.decision.network);
        self.let_go();
    }

    fn let_go(self) {
        let key = self.image.map(|image| image.key().to_owned());
        // This waits for an init that was just killed, which may have inherited the image's lock.
        let _ = self.cgroup.remove();
        if let Some(key) = key {
            let _ = rootfs::unmount_unused(&self.decision.guest.pool().images_dir(), &key);
        }
    }

    /// The base's image, mounted for all its guests.
    pub fn image(&self) -> Option<&SharedImage> {
        self.image.as_ref()
    }

    fn record(&self, init: i32, monitor: i32) -> Result<()> {
        let identity = |pid| process::inode(pid).map(|inode| (pid, inode));
        let image = self.image().map(SharedImage::key);
        let record = self.decision.record(identity(init)?, identity(monitor)?, image);
        write_record(&self.cgroup, self.decision.guest.name(), &record)
    }
}
