use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use holm_proto::{init, path};
use rustix::fs::{CWD, Mode, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::umask;

use super::repair::store_state;
use super::{Error, Result};
use crate::cgroup::{GuestCgroup, Limits};
use crate::config::{Config, Init as InitKind, Restart, Rlimit};
use crate::disk::Layer;
use crate::host;
use crate::launch::{self, Assembled, Init, Running, Spec, Stdio};
use crate::monitor;
use crate::net;
use crate::pool::{Name, Pool};
use crate::process::{self, own_pid};
use crate::record::{Ids, Network, RunRecord, now, since_boot};
use crate::rootfs::{self, Layers};
use crate::step;
use crate::store::{self, Base};
use crate::system::{self, Content, File, Identity, Kind, Overlay, Stop};

/// A guest about to be started: everything is decided, its control group and nothing else is made.
#[derive(Debug)]
pub struct Prepared<'a> {
    pool: &'a Pool,
    name: &'a Name,
    config: Config,
    base: Base,
    // The base cannot be removed until the guest's mounts hold its image.
    _pin: store::Pin,
    pub ids: Ids,
    pub cgroup: GuestCgroup,
    pub plan: Network,
    layer: Layer,
    /// The guest's machine id.
    uuid: String,
    /// The guest has not run yet: it gets its identity.
    first: bool,
}

impl<'a> Prepared<'a> {
    /// Decides everything and makes the guest's control group.
    pub fn new(
        pool: &'a Pool,
        name: &'a Name,
        config: Config,
        ids: Ids,
        layer: Layer,
    ) -> Result<Self> {
        if let Some(lack) = host::forced_lack() {
            return Err(Error::Lacks(Box::new(lack)));
        }
        // Folders and files in the guest have the modes that they are given, whatever the caller's shell takes away.
        umask(Mode::from_raw_mode(0o022));
        let (uuid, first) = identity(pool, name, layer.is_kept())?;
        let (base, pin) = store::pin(pool, &Name::new(&config.base)?)?;
        step::done("base");
        let plan = net::plan(pool.instance(), ids.context, &config.net)?;
        step::done("net-plan");
        let owner = (ids.base, ids.base);
        let limits = limits(&config);
        let cgroup = GuestCgroup::create(pool.cgroup()?, name.as_str(), &limits, owner)?;
        let prepared =
            Self { pool, name, config, base, _pin: pin, ids, cgroup, plan, layer, uuid, first };
        // From here on a guest without a folder can be found, and tells whose it is.
        step::done("cgroup");
        prepared.record(0, own_pid())?;
        step::done("record");
        Ok(prepared)
    }

    /// Makes the guest up to its init, which waits. `stdio` is what its standard streams are; `notify` is bound in the
    /// guest.
    pub fn assemble(
        &self,
        stdio: Stdio,
        notify: Option<&OwnedFd>,
        monitor: i32,
    ) -> Result<Assembled> {
        let init = self.init(stdio, notify.is_some())?;
        let needed = self.kind() == Kind::Minimal && !init.in_place;
        let minimal_init = if needed { Some(init_program(self.pool)?) } else { None };
        let files = self.files(stdio);
        let rlimits = self.rlimits();
        let record =
            |pid| self.record(pid, monitor).map_err(|error| super::error::in_one_line(&error));
        let spec = Spec {
            pool: self.pool,
            ids: self.ids,
            layers: Layers { image: &self.base.image, upper: self.layer.upper() },
            cgroup: &self.cgroup,
            net: &self.plan,
            shm: self.config.memory.shm,
            rlimits: &rlimits,
            devices: &self.config.devices,
            binds: &self.config.mounts,
            files: &files,
            minimal_init,
            // A guest of one command starts on an empty private layer: its /run is as empty.
            run: self.layer.is_kept(),
            notify,
            init,
            record: &record,
        };
        Ok(launch::assemble(&spec)?)
    }

    /// Lets init run.
    pub fn release(&self, assembled: Assembled) -> Result<Running> {
        let running = assembled.release()?;
        if self.first && self.layer.is_kept() {
            let _ = std::fs::remove_file(self.pool.guest_dir(self.name).join(NEW));
        }
        Ok(running)
    }

    /// Init keeps the master of its console, so that no end of a monitor reaches it.
    pub fn keeps_console(&self) -> bool {
        self.kind() == Kind::Minimal
    }

    /// Removes what is left when init has ended. The interface is not waited for: it goes with the guest's network
    /// namespace, some tens of milliseconds later.
    pub fn clean_up(self) {
        let _ = self.cgroup.kill();
        let _ = net::end(&self.plan);
        let _ = self.cgroup.remove();
    }

    /// Removes what [`Prepared::new`] and a failed launch have made.
    pub fn undo(self) {
        let _ = self.cgroup.kill();
        let _ = net::detach(&self.plan);
        let _ = self.cgroup.remove();
    }

    fn record(&self, pid: i32, monitor: i32) -> Result<()> {
        let state = RunRecord {
            init_pid: pid,
            init_inode: process::inode(pid),
            monitor_pid: monitor,
            monitor_inode: process::inode(monitor),
            started: now(),
            started_boot: Some(since_boot()),
            base: self.config.base.clone(),
            ids: self.ids,
            network: self.plan.clone(),
            stop_signal: self.stop_signal(),
            security: self.config.security.clone(),
            arch: self.config.arch,
            rlimits: self.rlimits(),
            minimal: self.kind() == Kind::Minimal,
            notifies: self.kind().notifies(),
            ephemeral: !self.layer.is_kept(),
            stopping: false,
            stopping_until: None,
            adopted: None,
        };
        store_state(&self.cgroup, self.name, &state)
    }

    fn init(&self, stdio: Stdio, notify: bool) -> Result<Init> {
        let kind = self.kind();
        let (program, argv) = if kind == Kind::Minimal {
            (path::INIT.to_owned(), init_args(&self.config))
        } else {
            let program = self.base.meta.system_init.clone();
            let program =
                program.ok_or_else(|| Error::NoInit { base: self.config.base.clone() })?;
            let argv = kind.command(&program);
            (argv[0].clone(), argv)
        };
        let mut env = system::environment(kind, &self.uuid, notify.then_some(path::NOTIFY));
        env.extend(self.config.env.clone());
        Ok(Init {
            program,
            argv,
            env,
            folder: PathBuf::from("/"),
            hostname: self.hostname().to_owned(),
            stdio,
            arch: self.config.arch,
            security: self.config.security.clone(),
            dies_with_launcher: matches!(stdio, Stdio::Inherit(_)),
            // Executing it takes a tenth of the time of a guest of one command; its memory matters in guests that stay.
            in_place: kind == Kind::Minimal && matches!(stdio, Stdio::Inherit(_)),
        })
    }

    /// The resource limits that guest.toml sets, `memory.lock` among them.
    fn rlimits(&self) -> BTreeMap<String, Rlimit> {
        let mut limits = self.config.rlimits.clone();
        if let Some(bytes) = self.config.memory.lock {
            limits.insert("memlock".to_owned(), Rlimit { soft: bytes, hard: bytes });
        }
        limits
    }

    fn kind(&self) -> Kind {
        match (self.config.init, &self.base.meta.init_kind) {
            (InitKind::Minimal, _) => Kind::Minimal,
            (InitKind::System, Some(kind)) => Kind::parse(kind),
            (InitKind::System, None) => Kind::Other,
        }
    }

    fn hostname(&self) -> &str {
        self.config.hostname.as_deref().unwrap_or(self.name.as_str())
    }

    /// The signal that asks init to end; `None` for an init that only a command inside can ask.
    fn stop_signal(&self) -> Option<i32> {
        match (self.config.stop.signal, self.kind().stop()) {
            (Some(signal), _) => Some(signal.0),
            (None, Stop::Signal(signal)) => Some(signal),
            (None, Stop::Command(_)) => None,
        }
    }

    fn files(&self, stdio: Stdio) -> Vec<File> {
        let network = net::files(&self.plan);
        if !self.layer.is_kept() && network == net::Files::default() {
            // A guest of one command is gone before anybody asks for its machine id.
            return Vec::new();
        }
        let mut files = system::run_files(&Overlay {
            kind: self.kind(),
            uuid: &self.uuid,
            console: matches!(stdio, Stdio::Console { .. }),
            resolv_conf: network.resolv_conf.as_deref(),
            networkd: network.networkd.as_deref(),
        });
        if let (Kind::Systemd(_), Ok(id)) = (self.kind(), system::machine_id()) {
            let content = Content::Text(system::uuid(&id) + "\n", 0o444);
            files.push(File { path: rootfs::BOOT_ID.into(), content, keep: false });
        }
        if self.first {
            let identity = Identity { hostname: self.hostname(), machine_id: &self.uuid };
            files.extend(identity.files());
        }
        files.extend(system::host_name(self.config.hostname.as_deref()));
        files.extend(system::ssh_keys(&self.config.ssh_keys));
        files
    }
}

fn init_args(config: &Config) -> Vec<String> {
    let services = config.services.iter().map(|service| init::Service {
        name: &service.name,
        command: &service.command,
        restart: match service.restart {
            Restart::No => init::Restart::No,
            Restart::OnFailure => init::Restart::OnFailure,
            Restart::Always => init::Restart::Always,
        },
    });
    let mut args = Vec::new();
    init::write(&config.command, services, |argument| args.push(argument.to_owned()));
    args
}

/// The reason of a failed start: what the host lacks, if it lacks something, says more than the call
/// that failed for it.
pub(super) fn reason(pool: &Pool, error: Error) -> Error {
    match error {
        Error::Start { .. } | Error::Launch(_) => match host::lack(pool.root()) {
            Some(lack) if lack.name == "filesystem" => Error::Unfit(Box::new(lack)),
            Some(lack) => Error::Lacks(Box::new(lack)),
            None => error,
        },
        other => other,
    }
}

/// Refuses a root on a filesystem that cannot hold guests, before anything is made there.
pub(super) fn fit(pool: &Pool) -> Result<()> {
    host::unfit(pool.root()).map_or(Ok(()), |finding| Err(Error::Unfit(Box::new(finding))))
}

/// Stands in a guest's folder until its first start has gone well.
pub const NEW: &str = "new";

/// The guest's machine id, and whether the guest has yet to be told it.
fn identity(pool: &Pool, name: &Name, kept: bool) -> Result<(String, bool)> {
    let fresh = || {
        system::machine_id()
            .map_err(|error| Error::io("draw a machine id from", "/dev/urandom", error))
    };
    if !kept {
        return Ok((fresh()?, true));
    }
    let folder = pool.guest_dir(name);
    let path = folder.join("machine-id");
    let first = folder.join(NEW).exists();
    match std::fs::read_to_string(&path) {
        Ok(uuid) if uuid.trim().len() == 32 => Ok((uuid.trim().to_owned(), first)),
        _ => {
            let uuid = fresh()?;
            crate::pool::write(&path, &format!("{uuid}\n"))?;
            Ok((uuid, first))
        }
    }
}

pub(super) fn limits(config: &Config) -> Limits {
    Limits {
        cpu_share: config.cpu.share,
        cpu_cap: config.cpu.cap,
        cpu_set: config.cpu.set.clone(),
        memory: config.memory.limit,
        swap: config.memory.swap,
        pids: config.pids.limit,
    }
}

/// The file of Holm's init in the pool, which all guests of the root share; written when it is
/// missing or of another version of Holm.
fn init_program(pool: &Pool) -> Result<PathBuf> {
    let path = pool.root().join(format!("init-{INIT:016x}"));
    if path.exists() {
        return Ok(path);
    }
    let new = pool.root().join(format!(".init.{}", std::process::id()));
    let fail = |error| Error::io("write Holm's init to", &path, error);
    std::fs::write(&new, monitor::IMAGE).map_err(fail)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o555)).map_err(fail)?;
    std::fs::File::open(&new).and_then(|file| file.sync_all()).map_err(fail)?;
    // Never in the place of one that another start has just written: what has lost its name cannot be mounted.
    match renameat_with(CWD, &new, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(path),
        Err(Errno::EXIST) => std::fs::remove_file(&new).map_err(fail).map(|()| path.clone()),
        Err(errno) => Err(fail(errno.into())),
    }
}

/// Tells one version of Holm's init from another. A constant: at run time it would take a start 0.1 ms.
const INIT: u64 = fingerprint(monitor::IMAGE);

/// FNV-1a.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// A socket for the guest's readiness message.
pub fn notify_socket() -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::io("make a socket for", path::NOTIFY, errno))?;
    // The monitor would close what comes, which may take long. Where the kernel cannot refuse it, a timer bounds that.
    let _ = holm_sys::socket::take_no_descriptors(&socket);
    Ok(socket)
}
