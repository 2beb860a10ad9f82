use std::io;

use rustix::io::Errno;

use crate::{Code, Coded, Details, Failed};

/// What can go wrong while a process is made for a guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process could not execute its program.
    #[error("cannot run the program: {}", exec_reason(*errno))]
    Exec {
        /// The kernel's error.
        errno: i32,
    },
    /// The process ended before its program ran, and sent no message.
    #[error(
        "the guest's first process was killed before init ran; its memory limit may be too small to start \
         (`holm set NAME memory.limit=...`)"
    )]
    Killed,
    /// The guest's mount namespace is still the host's.
    #[error(
        "cannot join the guest's namespaces: the guest is still being started; try again when `holm start` has returned"
    )]
    Starting,
    /// The launcher is still in the guest's namespaces, where it can look at nothing of the host.
    #[error("cannot return to the host's namespaces")]
    Stranded(#[source] io::Error),
    /// The process of a command ended before its program ran, and sent no message.
    #[error(
        "the command was killed before it ran; the guest's memory limit may be too small for it \
         (`holm set NAME memory.limit=...`)"
    )]
    CommandKilled,
    /// A command's user is not the guest's.
    #[error("the guest's /etc/passwd and /etc/group do not have this user or group")]
    NoUser,
    /// A command's working directory cannot be entered.
    #[error("cannot change to the working directory")]
    Directory(#[source] io::Error),
    /// A command's process did not execute its program in time.
    #[error(
        "the command did not start in time: the guest is frozen (`holm thaw`), \
         or waits for a filesystem that does not respond"
    )]
    Timeout,
    /// The system call filter could not be loaded.
    #[error(
        "cannot load the system call filter; if guests have used up the memory for compiled filters, \
         ending one of them helps, or a higher net.core.bpf_jit_limit (sysctl)"
    )]
    Filter(#[source] io::Error),
    /// A guest's first process did not come to its next step in time.
    #[error(
        "the guest's first process did not {step} within {seconds} s: the host is out of memory or \
         of CPU time, or the guest is frozen; try again"
    )]
    InitStuck {
        /// What it did not do.
        step: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// The host has no pty left for a guest.
    #[error(
        "the host has no pseudo-terminal left for a guest's console: {open} are open, of \
         {max} ({reserve} of them for the host alone); set a higher limit \
         (`sysctl -w kernel.pty.max=...`), or stop a guest that has opened many"
    )]
    NoTerminal {
        /// How many are open.
        open: u64,
        /// `kernel.pty.max`.
        max: u64,
        /// `kernel.pty.reserve`.
        reserve: u64,
    },
    /// A resource limit that this host does not let Holm set.
    #[error(
        "cannot set rlimits.{name}: raising a hard limit needs CAP_SYS_RESOURCE, \
         which `holm doctor` finds missing here: choose a lower value"
    )]
    Rlimit {
        /// The limit.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(Failed),
}

impl Error {
    pub(crate) fn step(what: &'static str, object: &str, source: impl Into<io::Error>) -> Self {
        Self::Failed(Failed::new(what, object, source))
    }
}

/// Why a program in a guest cannot be executed, and what to do.
pub(crate) fn exec_reason(errno: i32) -> String {
    match Errno::from_raw_os_error(errno) {
        Errno::NOENT => "the program, or the loader it names, is not in the guest".to_owned(),
        Errno::ACCESS => "it is not executable (chmod +x), or is on a noexec mount".to_owned(),
        Errno::NOEXEC => {
            "it is not a program of this machine's architecture, nor a script with #!; \
             use a base made for this machine (`holm base inspect` shows a base's architecture)"
                .to_owned()
        }
        other => other.to_string(),
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Exec { errno } => {
                Details::new(Code::CommandNotExecutable).reason(exec_reason(*errno))
            }
            Self::Killed => Details::new(Code::InitKilled)
                .remedy("its memory limit may be too small to start; set a higher memory.limit"),
            Self::Starting => {
                Details::new(Code::GuestStarting).remedy("try again when holm start has returned")
            }
            Self::Stranded(error) => Details::new(Code::SystemError).reason(error),
            Self::CommandKilled => Details::new(Code::CommandNotExecutable)
                .reason("it was killed before it ran")
                .remedy("the guest's memory limit may be too small; set a higher memory.limit"),
            Self::NoUser => Details::new(Code::UserNotFound),
            Self::Directory(_) => Details::new(Code::WorkingDirectoryUnusable),
            Self::Filter(_) => Details::new(Code::ConfinementFailed).remedy(
                "a higher net.core.bpf_jit_limit (sysctl), or end guests that load filters",
            ),
            Self::Timeout => Details::new(Code::CommandStuck)
                .reason("the guest is frozen, or waits for a filesystem that does not respond")
                .remedy("holm thaw"),
            Self::InitStuck { step, seconds } => Details::new(Code::Timeout)
                .reason(format!("it did not {step} within {seconds} s"))
                .remedy("try again when the host has memory and CPU time"),
            Self::NoTerminal { .. } => Details::new(Code::TerminalsExhausted)
                .object("kernel.pty.max")
                .remedy("set a higher kernel.pty.max, or stop a guest that has opened many"),
            Self::Rlimit { name, .. } => Details::new(Code::LimitRefused)
                .object(format!("rlimits.{name}"))
                .remedy("choose a lower value"),
            Self::Failed(failed) => failed.details(),
        }
    }
}
