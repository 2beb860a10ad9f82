use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use crate::config::show_duration;
use crate::pool::Name;
use crate::{Code, Coded, Details, Failed};

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of an operation on a guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The root or a name.
    #[error(transparent)]
    Pool(#[from] crate::pool::Error),
    /// A name that Holm does not accept.
    #[error(transparent)]
    Name(#[from] crate::pool::BadName),
    /// The base.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// The private layer.
    #[error(transparent)]
    Disk(#[from] crate::disk::Error),
    /// A volume.
    #[error(transparent)]
    Volume(#[from] crate::volume::Error),
    /// guest.toml.
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    /// The cgroup.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The network.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// A process.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// The launch.
    #[error(transparent)]
    Launch(#[from] crate::launch::Error),
    /// The monitor.
    #[error(transparent)]
    Monitor(#[from] crate::monitor::Error),
    /// A command inside the guest.
    #[error(transparent)]
    Exec(#[from] crate::exec::Error),
    /// The host lacks something that every guest needs.
    #[error("this host lacks {}: {}; {}; {}", .0.name, .0.detail, .0.cost, .0.remedy)]
    RequirementMissing(Box<crate::host::Finding>),
    /// The Holm root is on a filesystem that cannot hold guests.
    #[error("the Holm root is on an unsupported filesystem: {}; {}", .0.detail, .0.remedy)]
    UnsupportedRoot(Box<crate::host::Finding>),
    /// Nothing can be written in the Holm root.
    #[error("nothing can be written in the Holm root: {}; {}", .0.detail, .0.remedy)]
    StorageFull(Box<crate::host::Finding>),
    /// What guests have of the host's network could not be recorded or read.
    #[error(transparent)]
    Flows(#[from] crate::flows::Error),
    /// A guest of this name exists.
    #[error("there is already a guest {0}; choose another name, or remove it with `holm rm {0}`")]
    Exists(Name),
    /// The guest runs, and the operation needs it stopped.
    #[error("guest {name} is running; stop it first: `holm stop {name}`{hint}")]
    Running {
        /// The guest.
        name: Name,
        /// Another remedy, as a clause, or nothing.
        hint: &'static str,
    },
    /// The guest has a pending restart, and the operation needs it stopped.
    #[error("guest {name} is about to be started again; stop it first: `holm stop {name}`{hint}")]
    Restarting {
        /// The guest.
        name: Name,
        /// Another remedy, as a clause, or nothing.
        hint: &'static str,
    },
    /// Guests run, and the operation needs all of them stopped.
    #[error("guests are running: {0}; stop them first: `holm stop --all`")]
    StillRunning(String),
    /// The guest runs already.
    #[error("guest {0} is already running; `holm restart {0}` restarts it")]
    AlreadyRunning(Name),
    /// The guest ended while it was waited for.
    #[error("guest {0} ended before it was ready; `holm logs {0}` shows what its init printed")]
    Ended(Name),
    /// A guest's monitor was killed before init reported that the guest is ready.
    #[error(
        "it is not known whether guest {0} is ready: its monitor was killed before init reported \
         it, and the new one cannot receive the report; the guest keeps running, and \
         `holm restart {0}` starts it with its own monitor"
    )]
    ReadinessUnknown(Name),
    /// The guest does not run.
    #[error("guest {0} is not running; `holm start {0}` starts it")]
    NotRunning(Name),
    /// guest.toml protects the guest from removal.
    #[error("guest {0} is protected; `holm set {0} protect=false` lifts that")]
    Protected(Name),
    /// guest.toml keeps the guest from sharing files with others.
    #[error("guest {0} shares nothing with others; `holm set {0} share=true` lets it")]
    Unshared(Name),
    /// The guest's files are where unification does not read them.
    #[error(
        "the files of guest {0} are in a root of its own or in memory, which `holm unify` does \
         not read"
    )]
    OwnDisk(Name),
    /// The guest is to have the address of another one.
    #[error(
        "net.address: {address} belongs to guest {owner}; choose another one \
         (`holm inspect {owner} net.address` shows it if it was set)"
    )]
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// Whose it is.
        owner: Name,
    },
    /// Its root is a copy of the base that it had at its first start.
    #[error(
        "the root of guest {name} is a copy of base {base}, which `set` cannot exchange; \
         `holm rebuild {name} --base BASE` makes a new root"
    )]
    RootIsCopy {
        /// The guest.
        name: Name,
        /// Its base.
        base: String,
    },
    /// guest.toml is not the one that was edited.
    #[error("guest.toml of {0} has changed since it was read; look at it and try again")]
    EditedMeanwhile(Name),
    /// What a restart needs is not there, so the guest was not stopped.
    #[error("guest {name} is not restarted, and runs on: it could not be started again")]
    RestartRefused {
        /// The guest.
        name: Name,
        /// Why it could not be started.
        source: Box<Error>,
    },
    /// The base has no init of its own.
    #[error(
        "base {base} has no init that Holm knows (systemd, sysvinit, OpenRC, runit); \
         use --init minimal, or a base with an init"
    )]
    NoInit {
        /// The base.
        base: String,
    },
    /// Connections of a guest without a monitor were to be recorded.
    #[error(
        "net.flows: a guest of `holm run` has no monitor that could record its connections; make \
         it with `holm launch`, or set net.flows = false"
    )]
    FlowsInForeground,
    /// The process that was to become the monitor failed, with this message.
    #[error("cannot start guest {name}: {message}")]
    Start {
        /// The guest.
        name: Name,
        /// Its message.
        message: String,
        /// The same for programs.
        details: Box<Details>,
    },
    /// The start hung.
    #[error(
        "cannot start guest {name}: it took more than {}, and was ended: {how_far}; see whether \
         what it names answers (a network filesystem, a disk), and start it again",
        show_duration(*time)
    )]
    StartStuck {
        /// The guest.
        name: Name,
        /// How long it had.
        time: Duration,
        /// How far it came, as a clause.
        how_far: String,
    },
    /// The guest did not end, or did not become ready, in time.
    #[error("guest {name} {what} within {}; {hint}", show_duration(*time))]
    Timeout {
        /// The guest.
        name: Name,
        /// What it failed to do.
        what: &'static str,
        /// How long was waited.
        time: Duration,
        /// What to do.
        hint: String,
    },
    /// The worker process for one of several guests was killed.
    #[error("the process that worked on {0} was killed")]
    WorkerKilled(String),
    /// The run record on a cgroup cannot be read.
    #[error("the run record of guest {name} cannot be read; `holm kill {name}` ends it")]
    RecordUnreadable {
        /// The guest.
        name: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Error {
    pub(crate) fn io(
        what: &'static str,
        object: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Failed(Failed::new(what, object, source))
    }

    /// The exit status of a command that was to run in a guest, and failed with this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Exec(error) => error.exit_status(),
            _ => 125,
        }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Name(error) => error.details(),
            Self::Pool(error) => error.details(),
            Self::Store(error) => error.details(),
            Self::Disk(error) => error.details(),
            Self::Volume(error) => error.details(),
            Self::Config(error) => error.details(),
            Self::Cgroup(error) => error.details(),
            Self::Net(error) => error.details(),
            Self::Launch(error) => error.details(),
            Self::Monitor(error) => error.details(),
            Self::Exec(error) => error.details(),
            Self::Failed(failed) => failed.details(),
            Self::Flows(error) => error.details(),
            Self::RequirementMissing(it) => finding_details(Code::RequirementMissing, it),
            Self::StorageFull(it) => finding_details(Code::StorageFull, it),
            Self::UnsupportedRoot(it) => finding_details(Code::FilesystemUnsupported, it),
            Self::Start { details, .. } => (**details).clone(),
            Self::RestartRefused { source, .. } => source.details(),
            Self::FlowsInForeground => Details::new(Code::SettingsInvalid)
                .object("net.flows")
                .remedy("holm launch, or net.flows = false"),
            Self::NoInit { base } => Details::new(Code::InitMissing)
                .object(base)
                .remedy("use --init minimal, or a base with an init"),
            Self::StillRunning(guests) => Details::new(Code::RootInUse)
                .reason(format!("guests are running: {guests}"))
                .remedy("holm stop --all"),
            Self::AddressTaken { address, owner } => Details::new(Code::AddressInUse)
                .object(address)
                .reason(format!("it belongs to guest {owner}"))
                .remedy("choose another net.address"),
            Self::WorkerKilled(name) => Details::new(Code::WorkerKilled).object(name),
            Self::RecordUnreadable { name, .. } => Details::new(Code::RunRecordUnreadable)
                .object(name)
                .remedy(format!("holm kill {name}")),
            Self::StartStuck { name, how_far, .. } => Details::new(Code::Timeout)
                .object(name)
                .reason(how_far)
                .remedy("see whether what it names answers, and start it again"),
            Self::Timeout { name, what, time, hint } => Details::new(Code::Timeout)
                .object(name)
                .reason(format!("{what} within {}", show_duration(*time)))
                .remedy(hint),
            other => other.state_details(),
        }
    }
}

impl Error {
    /// The details of errors whose reason is the guest's state.
    fn state_details(&self) -> Details {
        let (code, name, remedy) = match self {
            Self::Exists(name) => (Code::GuestExists, name, "choose another name, or holm rm"),
            Self::Running { name, .. } => (Code::GuestRunning, name, "holm stop"),
            Self::AlreadyRunning(name) => (Code::GuestRunning, name, "holm restart"),
            Self::Restarting { name, .. } => (Code::GuestRestarting, name, "holm stop"),
            Self::Ended(name) => (Code::GuestEnded, name, "holm logs"),
            Self::ReadinessUnknown(name) => (Code::ReadinessUnknown, name, "holm restart"),
            Self::NotRunning(name) => (Code::GuestNotRunning, name, "holm start"),
            Self::Protected(name) => {
                return Details::new(Code::GuestProtected)
                    .object(name)
                    .remedy(format!("holm set {name} protect=false"));
            }
            Self::OwnDisk(name) => {
                return Details::new(Code::GuestUnshared)
                    .object(name)
                    .reason("its files are in a root of its own or in memory");
            }
            Self::Unshared(name) => {
                return Details::new(Code::GuestUnshared)
                    .object(name)
                    .remedy(format!("holm set {name} share=true"));
            }
            Self::RootIsCopy { name, base } => {
                return Details::new(Code::LayerOfOtherBase)
                    .object(name)
                    .reason(format!("its root is a copy of base {base}"))
                    .remedy(format!("holm rebuild {name} --base BASE"));
            }
            Self::EditedMeanwhile(name) => {
                return Details::new(Code::SettingsChanged)
                    .object(name)
                    .remedy("look at guest.toml and do it again");
            }
            _ => return Details::new(Code::SystemError),
        };
        Details::new(code).object(name).remedy(format!("{remedy} {name}"))
    }
}

fn finding_details(code: Code, finding: &crate::host::Finding) -> Details {
    Details::new(code).object(finding.name).reason(&finding.detail).remedy(finding.remedy)
}
