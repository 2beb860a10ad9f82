use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;

use holm_proto::CONSOLE_MASTER;
use holm_sys::child::ChildProcess;
use holm_sys::exec::cloexec_from;
use holm_sys::in_place::run_without_exec;
use holm_sys::process::{self as sys, flags};
use rustix::fs::{CWD, Mode};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Gid, Signal, Uid, chdir, set_parent_process_death_signal, setsid, umask};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::init::{Program, Stdio};
use super::spec::{FilterLoader, Spec};
use crate::config::Arch;
use crate::net;
use crate::process::{ChildEnd, Step, TimeNamespace, open_console};
use crate::security;
use crate::terminal::first_of;

/// The guest's side of a launch: from the clone to exec.
pub fn run(spec: &Spec<'_>, child: &ChildProcess, to_launcher: &ChildEnd, program: &Program) -> ! {
    match prepare(spec, child, to_launcher, program) {
        Ok(never) => match never {},
        Err((step, error)) => to_launcher.fail(step, &error),
    }
}

enum Never {}

fn prepare(
    spec: &Spec<'_>,
    child: &ChildProcess,
    to_launcher: &ChildEnd,
    program: &Program,
) -> Result<Never, (Step, io::Error)> {
    let init = &spec.init;
    let at = |step: Step| move |error: rustix::io::Errno| (step, io::Error::from(error));
    // Init moves itself: in v1 hierarchies moving another process takes milliseconds.
    for tasks in spec.cgroup.v1_tasks() {
        rustix::io::write(tasks, b"0").map_err(at(Step::Cgroup))?;
    }
    // Not by flags of the clone: the root of the cgroup namespace would be the launcher's cgroup,
    // and the time namespace would belong to the host's user namespace.
    sys::unshare(flags::NEWCGROUP | flags::NEWTIME).map_err(|error| (Step::Namespaces, error))?;
    let clocks = TimeNamespace::of_children().map_err(|error| (Step::Clocks, error))?;
    if net::has_own_namespace(spec.assembly.net) {
        sys::unshare(flags::NEWNET).map_err(|error| (Step::Network, error))?;
        net::loopback_up().map_err(at(Step::Network))?;
    }
    to_launcher.ready();

    // While the launcher makes the mounts, everything that does not need them.
    rustix::system::sethostname(init.hostname.as_bytes()).map_err(at(Step::HostName))?;
    if init.arch == Arch::I686 {
        sys::personality_32_bit().map_err(|error| (Step::Personality, error))?;
    }
    let _ = setsid();
    umask(Mode::from_raw_mode(0o022));
    sys::reset_signals();
    let kernel = |step| move |error: security::Error| (step, error.into_kernel());
    if spec.filter == FilterLoader::Init {
        security::install(&program.filter).map_err(kernel(Step::Filter))?;
    }
    to_launcher.wait_for_release();

    clocks.enter().map_err(|error| (Step::Clocks, error))?;
    set_thread_groups(&[]).map_err(at(Step::Credentials))?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(at(Step::Credentials))?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(at(Step::Credentials))?;
    if init.dies_with_launcher {
        // After the change of ids, which clears it (prctl(2)).
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::Credentials))?;
        to_launcher.end_if_orphaned();
    }
    sys::unshare(flags::NEWNS).map_err(|error| (Step::MountNamespace, error))?;
    // As systemd's container interface wants it: mounts that its services make reach the mount
    // namespaces of the others (credentials, PrivateTmp=). None of them reaches the host, whose
    // mounts are no peers of these.
    mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)
        .map_err(at(Step::MountNamespace))?;
    chdir(&init.directory).map_err(at(Step::Directory))?;
    cloexec_from(3).map_err(|error| (Step::Exec, error))?;
    let (terminals, keep) = match init.stdio {
        Stdio::Console { init_keeps_master } => ([true; 3], init_keeps_master),
        Stdio::Inherit(terminals) => (terminals, false),
    };
    if let Some(held) = spec.held {
        held.let_go();
    }
    if terminals.contains(&true) {
        let like = match init.stdio {
            Stdio::Console { .. } => None,
            Stdio::Inherit(terminals) => first_of(terminals),
        };
        let (master, _) =
            open_console(to_launcher, terminals, like).map_err(|error| (Step::Console, error))?;
        if keep {
            child
                .duplicate_to(master.as_fd(), CONSOLE_MASTER)
                .map_err(|error| (Step::Console, error))?;
        }
    }
    security::apply_caps(program.bounding_set).map_err(kernel(Step::Capabilities))?;
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
