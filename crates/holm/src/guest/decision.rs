//! What is decided about a start before the guest's cgroup and processes are made.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use holm_proto::{init, path};
use rustix::fs::Mode;
use rustix::mount::MountAttrFlags;
use rustix::process::umask;

use super::error::{Error, Result};
use super::handle::Guest;
use super::machine_id::machine_id;
use crate::config::{Arch, BindMount, Config, Init as InitKind, Restart, Rlimit};
use crate::disk::{self, Layer};
use crate::host;
use crate::launch::{self, Init, Stdio};
use crate::net;
use crate::pool::Name;
use crate::record::{Ids, Network, RunRecord, now, since_boot};
use crate::rootfs::{self, Layers, SharedImage};
use crate::step;
use crate::store::{self, Base};
use crate::system::{self, BootFiles, Content, File, Identity, Kind};
use crate::volume;

/// What is known about a start before the guest's cgroup and processes are made.
#[derive(Debug)]
pub struct Decision<'a> {
    pub guest: Guest<'a>,
    pub config: Config,
    pub base: Base,
    // Keeps the base from being removed until the guest's mounts refer to its image.
    _pin: store::Pin,
    pub ids: Ids,
    pub network: Network,
    pub layer: Layer,
    /// The guest's own image, if it was unified.
    pub unified: Option<PathBuf>,
    /// The guest has no directory.
    pub ephemeral: bool,
    machine_id: String,
    /// The guest has not run yet, or its files are in memory, so its identity is written into it.
    pub is_first: bool,
}

/// Decides how a guest is started with these settings, ids and private layer. An ephemeral one has
/// no directory.
pub fn decide(
    guest: Guest<'_>,
    config: Config,
    ids: Ids,
    layer: Layer,
    ephemeral: bool,
) -> Result<Decision<'_>> {
    if let Some(missing) = host::forced_missing() {
        return Err(Error::RequirementMissing(Box::new(missing)));
    }
    // The modes of files in the guest must not depend on the caller's umask.
    umask(Mode::from_raw_mode(0o022));
    let pool = guest.pool();
    let (machine_id, is_first) = machine_id(&guest, !ephemeral)?;
    let is_first = is_first || layer.is_new()?;
    let (base, pin) = store::pin(pool, &Name::new(&config.base)?)?;
    let unified = layer.image(&base.identity())?;
    step::done("base");
    let layer_is_persistent = layer.is_persistent();
    let mut network = net::plan(pool.instance(), ids.context, &config.net)?;
    network.lan = net::plan_lan(&config.net, &machine_id)?;
    network.name = config.net.names.then(|| guest.name().to_string());
    step::done("net-plan");
    Ok(Decision {
        guest,
        config,
        base,
        _pin: pin,
        ids,
        network,
        layer,
        unified,
        ephemeral,
        machine_id,
        is_first: is_first || !layer_is_persistent,
    })
}

impl Decision<'_> {
    /// The base's image, to be mounted for all its guests; `None` if the root has no use for it.
    pub fn shared_image(&self) -> Result<Option<SharedImage>> {
        if matches!(self.layer, Layer::Plain(_)) {
            return Ok(None);
        }
        let pool = self.guest.pool();
        let what = format_args!("the image of base {}", self.base.name);
        SharedImage::of(&pool.images_dir(), &self.base.image, pool.waiting(&what))
            .map(Some)
            .map_err(|error| launch::Error::from(error).into())
    }

    /// Mounts the base's image for all its guests, and returns a copy of the mount.
    pub fn copy_image_mount(&self, image: &SharedImage) -> rootfs::Result<OwnedFd> {
        let what = format_args!("the image of base {}", self.base.name);
        image.copy_mount(&self.base.image, self.guest.pool().waiting(&what))
    }

    /// What the guest's root is made of; `objects` is the directory of objects.
    pub fn layers<'a>(&'a self, objects: &'a Path) -> Layers<'a> {
        Layers {
            image: &self.base.image,
            shared: None,
            unified: self.unified.as_deref(),
            objects,
            upper: self.layer.upper(),
            xino: self.config.arch != Arch::I686,
        }
    }

    /// Host directories and files to bind.
    pub fn binds(&self) -> Vec<BindMount> {
        let names = self.network.name.as_ref().map(|_| BindMount {
            source: net::hosts_file(self.network.instance),
            target: PathBuf::from("/etc/hosts"),
            read_only: true,
        });
        self.config.mounts.iter().cloned().chain(names).collect()
    }

    /// Makes the guest's root if that is a copy of the base and is not there yet.
    pub fn plain_root(&self) -> Result<()> {
        if let Layer::Plain(disk) = &self.layer {
            let pool = self.guest.pool();
            let objects = pool.objects_dir();
            let layers = self.layers(&objects);
            disk::make_missing(pool, self.guest.name(), layers, disk)?;
        }
        Ok(())
    }

    /// Pins the guest's volumes, and makes those that do not exist.
    pub fn volumes(&self) -> Result<Vec<volume::Pin>> {
        let wanted = &self.config.volumes;
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let (pool, name) = (self.guest.pool(), self.guest.name());
        let pins = volume::make_missing(pool, name, wanted, self.layers(&pool.objects_dir()))?;
        step::done("volumes");
        Ok(pins)
    }

    /// The run record.
    pub fn record(&self, init: (i32, u64), monitor: (i32, u64), image: Option<&str>) -> RunRecord {
        RunRecord {
            init_pid: init.0,
            init_inode: init.1,
            monitor_pid: monitor.0,
            monitor_inode: monitor.1,
            started: now(),
            started_boot: Some(since_boot()),
            base: self.config.base.clone(),
            image: image.map(str::to_owned),
            ids: self.ids,
            network: self.network.clone(),
            stop_signal: self.stop_signal(),
            security: self.config.security.clone(),
            arch: self.config.arch,
            rlimits: self.rlimits(),
            volumes: self.config.volumes.iter().map(|volume| volume.name.clone()).collect(),
            minimal: self.is_minimal(),
            notifies: self.kind().notifies(),
            ephemeral: self.ephemeral,
            stopping: false,
            stopping_until: None,
            adopted: None,
        }
    }

    /// Whether process 1 is minimal init. That keeps the master of its console open, so its console
    /// survives the monitor.
    pub fn is_minimal(&self) -> bool {
        self.kind() == Kind::Minimal
    }

    /// Process 1, and how it is executed.
    pub fn init(&self, stdio: Stdio, notify: bool) -> Result<Init> {
        let kind = self.kind();
        let (program, argv) = if self.is_minimal() {
            (path::INIT.to_owned(), init_args(&self.config))
        } else {
            let program = self.base.meta.system_init.clone();
            let program =
                program.ok_or_else(|| Error::NoInit { base: self.config.base.clone() })?;
            let argv = kind.command(&program);
            (argv[0].clone(), argv)
        };
        let mut env = system::environment(kind, &self.machine_id, notify.then_some(path::NOTIFY));
        env.extend(self.config.env.clone());
        Ok(Init {
            program,
            argv,
            env,
            directory: PathBuf::from("/"),
            hostname: self.hostname().to_owned(),
            stdio,
            arch: self.config.arch,
            security: self.config.security.clone(),
            hides_sockets: self.network.hides_sockets,
            dies_with_launcher: matches!(stdio, Stdio::Inherit(_)),
            // Without the exec, `holm run` takes a tenth less time. Other guests execute init: as a
            // separate program it uses less memory.
            in_place: self.is_minimal() && matches!(stdio, Stdio::Inherit(_)),
        })
    }

    /// The standard streams of a guest with a monitor.
    pub fn console(&self) -> Stdio {
        Stdio::Console { init_keeps_master: self.is_minimal() }
    }

    /// Tries what a start does without a process: init is known, its privileges are, and the base's
    /// image can be mounted.
    pub fn check(&self) -> Result<()> {
        self.init(self.console(), true)?.prepare()?;
        rootfs::mount_image(&self.base.image, MountAttrFlags::empty())
            .map_err(launch::Error::from)?;
        Ok(())
    }

    /// The resource limits that guest.toml sets, `memory.lock` among them.
    pub fn rlimits(&self) -> BTreeMap<String, Rlimit> {
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
        self.config.hostname.as_deref().unwrap_or(self.guest.name().as_str())
    }

    /// The signal that makes init shut down; `None` if it has none, and `stop` executes a command
    /// in the guest instead.
    fn stop_signal(&self) -> Option<i32> {
        self.config.stop.signal.map(|signal| signal.0).or_else(|| self.kind().stop_signal())
    }

    /// The boot files.
    pub fn files(&self, stdio: Stdio) -> Vec<File> {
        let network = net::files(&self.network);
        if self.ephemeral && network == net::Files::default() {
            // In an ephemeral guest nothing looks at these files.
            return Vec::new();
        }
        let mut files = system::boot_files(&BootFiles {
            kind: self.kind(),
            machine_id: &self.machine_id,
            console: matches!(stdio, Stdio::Console { .. }),
            resolv_conf: network.resolv_conf.as_deref(),
            networkd: &network.networkd,
        });
        if let (Kind::Systemd(_), Ok(id)) = (self.kind(), system::random_id128()) {
            let content = Content::Text(system::uuid(&id) + "\n", 0o444);
            files.push(File { path: rootfs::BOOT_ID.into(), content, keep: false });
        }
        if self.is_first {
            let identity = Identity { hostname: self.hostname(), machine_id: &self.machine_id };
            files.extend(identity.files());
        }
        files.extend(system::host_name(self.config.hostname.as_deref()));
        files.extend(system::ssh_keys(&self.config.ssh_keys));
        files
    }
}

/// The arguments of the minimal init.
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
