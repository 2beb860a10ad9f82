use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use holm_proto::CONSOLE_MASTER;
use holm_sys::child::ChildProcess;
use holm_sys::exec::cloexec_from;
use holm_sys::in_place::run_without_exec;
use holm_sys::process::{self as sys, flags};
use holm_sys::seccomp::Instruction;
use rustix::fs::{CWD, Mode};
use rustix::process::{Gid, Signal, Uid, chdir, set_parent_process_death_signal, setsid, umask};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::{Error, Result, Spec};
use crate::config::{Arch, Security};
use crate::net;
use crate::process::{ChildEnd, Step, TimeNamespace, open_console};
use crate::security;
use crate::terminal::{Terminals, first_of};

/// Process 1 of a guest.
#[derive(Debug, Clone)]
pub struct Init {
    /// Path in the guest.
    pub program: String,
    /// Arguments, the first of which is the name it runs under.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub folder: PathBuf,
    /// Host name.
    pub hostname: String,
    /// Its input and output.
    pub stdio: Stdio,
    /// The machine that its programs see.
    pub arch: Arch,
    /// What it may do.
    pub security: Security,
    /// It is killed when the launcher ends, however that ends.
    pub dies_with_launcher: bool,
    /// Holm's minimal init, without executing its file: `program` is not looked at.
    pub in_place: bool,
}

/// What init's descriptors 0 to 2 are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// The guest's console: a pty of its own devpts. With `keep` init keeps the master as descriptor
    /// [`CONSOLE_MASTER`], so that it outlives every process of Holm.
    Console {
        /// The program is Holm's init, which keeps it.
        keep: bool,
    },
    /// The launcher's own, but for those that are terminals: a guest that got hold of a terminal of the host could type
    /// into it. A pty of the guest's devpts stands for them.
    Inherit(Terminals),
}

/// A program ready to be executed: nothing is allocated between clone and exec that need not be.
#[derive(Debug)]
pub struct Program {
    path: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    filter: Vec<Instruction>,
    bound: u64,
}

impl Init {
    pub(super) fn prepare(&self) -> Result<Program> {
        let text = |text: &str| {
            CString::new(text).map_err(|error| Error::step("pass on", text, io::Error::from(error)))
        };
        let env = self.env.iter().map(|(key, value)| text(&format!("{key}={value}")));
        Ok(Program {
            path: text(&self.program)?,
            argv: self.argv.iter().map(|word| text(word)).collect::<Result<_>>()?,
            env: env.collect::<Result<_>>()?,
            filter: security::seccomp(&self.security, self.arch),
            bound: security::bounding_set(&self.security)?,
        })
    }
}

/// The guest's side of a launch: from the clone to exec.
pub fn run(spec: &Spec<'_>, child: &ChildProcess, launcher: &ChildEnd, program: &Program) -> ! {
    match prepare(spec, child, launcher, program) {
        Ok(never) => match never {},
        Err((step, error)) => launcher.fail(step, &error),
    }
}

enum Never {}

fn prepare(
    spec: &Spec<'_>,
    child: &ChildProcess,
    launcher: &ChildEnd,
    program: &Program,
) -> std::result::Result<Never, (Step, io::Error)> {
    let init = &spec.init;
    let at = |step: Step| move |error: rustix::io::Errno| (step, io::Error::from(error));
    // The first process moves itself: moving another takes the v1 hierarchies milliseconds.
    for tasks in spec.cgroup.v1_tasks() {
        rustix::io::write(tasks, b"0").map_err(at(Step::Cgroup))?;
    }
    // Given at clone, the cgroup namespace would begin at the launcher's cgroup, and the time namespace belong to the
    // host's user namespace.
    sys::unshare(flags::NEWCGROUP | flags::NEWTIME).map_err(|error| (Step::Namespaces, error))?;
    let clocks = TimeNamespace::of_children().map_err(|error| (Step::Clocks, error))?;
    if net::has_own_namespace(spec.net) {
        sys::unshare(flags::NEWNET).map_err(|error| (Step::Network, error))?;
        net::loopback_up().map_err(at(Step::Network))?;
    }
    launcher.ready();

    // While the launcher makes the mounts, whatever needs none.
    rustix::system::sethostname(init.hostname.as_bytes()).map_err(at(Step::HostName))?;
    if init.arch == Arch::I686 {
        sys::personality_32_bit().map_err(|error| (Step::Personality, error))?;
    }
    let _ = setsid();
    umask(Mode::from_raw_mode(0o022));
    sys::reset_signals();
    let kernel = |step| move |error: security::Error| (step, error.into_kernel());
    security::install(&program.filter).map_err(kernel(Step::Filter))?;
    launcher.wait_for_release();

    clocks.enter().map_err(|error| (Step::Clocks, error))?;
    set_thread_groups(&[]).map_err(at(Step::Credentials))?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(at(Step::Credentials))?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(at(Step::Credentials))?;
    if init.dies_with_launcher {
        // After the change of ids, which would have taken it back.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::Credentials))?;
        launcher.end_if_orphaned();
    }
    sys::unshare(flags::NEWNS).map_err(|error| (Step::MountNamespace, error))?;
    chdir(&init.folder).map_err(at(Step::Directory))?;
    cloexec_from(3).map_err(|error| (Step::Exec, error))?;
    let (terminals, keep) = match init.stdio {
        Stdio::Console { keep } => ([true; 3], keep),
        Stdio::Inherit(terminals) => (terminals, false),
    };
    if terminals.contains(&true) {
        let like = match init.stdio {
            Stdio::Console { .. } => None,
            Stdio::Inherit(terminals) => first_of(terminals),
        };
        let (master, _) =
            open_console(launcher, terminals, like).map_err(|error| (Step::Console, error))?;
        if keep {
            child
                .duplicate_to(master.as_fd(), CONSOLE_MASTER)
                .map_err(|error| (Step::Console, error))?;
        }
    }
    security::apply_caps(program.bound).map_err(kernel(Step::Capabilities))?;
    if init.in_place {
        let _ = rustix::thread::set_name(c"init");
        return Err((
            Step::Exec,
            run_without_exec(child, &program.argv, &program.env, holm_init::init::run),
        ));
    }
    let argv: Vec<&CStr> = program.argv.iter().map(CString::as_c_str).collect();
    let env: Vec<&CStr> = program.env.iter().map(CString::as_c_str).collect();
    Err((Step::Exec, sys::exec(CWD, &program.path, &argv, &env)))
}
