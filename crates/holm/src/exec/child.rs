use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use holm_sys::child::ChildProcess;
use holm_sys::process::{self as sys, Namespace};
use rustix::fs::{CWD, FileType, Mode, OFlags, fchown, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, chdir, ioctl_tiocsctty, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{
    LinkNameSpaceType, move_into_link_name_space, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use super::command::{Command, Streams};
use super::user::User;
use crate::config::Arch;
use crate::process::{self, ChildEnd, Step, drop_scheduling_boost, open_console, rlimits};
use crate::record::RunRecord;
use crate::security;
use crate::step;
use crate::terminal::first_of;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the child has to do.
pub struct Plan<'a> {
    pub record: &'a RunRecord,
    pub command: &'a Command,
    /// Its standard streams.
    pub streams: Streams,
    /// The guest's init.
    pub init: OwnedFd,
    /// The namespaces to join, besides the mount namespace.
    pub joined: u64,
    /// v1 cgroups to enter.
    pub tasks: Vec<OwnedFd>,
}

/// From the clone to exec; tells the parent what failed.
pub fn run(plan: &Plan<'_>, child: &ChildProcess, parent: &ChildEnd) -> ! {
    let (step, error) = enter(plan, child, parent);
    parent.fail(step, &error)
}

fn enter(plan: &Plan<'_>, child: &ChildProcess, parent: &ChildEnd) -> (Step, io::Error) {
    match prepare(plan, child, parent) {
        Err(failure) => failure,
        Ok((user, env)) => {
            step::done("exec-prepared");
            parent.executing();
            (Step::Exec, execute(plan.command, &user, &env))
        }
    }
}

type Prepared = (User, BTreeMap<String, String>);

fn prepare(
    plan: &Plan<'_>,
    child: &ChildProcess,
    parent: &ChildEnd,
) -> Result<Prepared, (Step, io::Error)> {
    let at = |step: Step| move |errno: Errno| (step, io::Error::from(errno));
    for tasks in &plan.tasks {
        rustix::io::write(tasks, b"0").map_err(at(Step::Cgroup))?;
    }
    drop_scheduling_boost();
    if let Streams::Null(null) = &plan.streams {
        dup2_stdin(null)
            .and_then(|()| dup2_stdout(null))
            .and_then(|()| dup2_stderr(null))
            .map_err(at(Step::Console))?;
    }
    // Closed, not only close-on-exec: a home in the guest's /etc/passwd, a link or a mount may name
    // /proc/self/fd/N, and from a directory of the host `..` leads to the host's root
    // (CVE-2024-21626).
    let [from_parent, to_parent] = parent.descriptors();
    child
        .close_all_but(3, &[from_parent, to_parent, plan.init.as_fd()])
        .map_err(|error| (Step::Exec, error))?;
    // While this process still has CAP_SYS_RESOURCE, which raising a hard limit takes.
    rlimits::set(None, &plan.record.rlimits).map_err(|error| match error {
        process::Error::Rlimit { source, .. } => (Step::Limits, source),
        other => (Step::Limits, io::Error::other(other.to_string())),
    })?;
    if plan.record.arch == Arch::I686 {
        sys::personality_32_bit().map_err(|error| (Step::Personality, error))?;
    }
    // While this process is root on the host, whom the limit on memory for compiled filters
    // (net.core.bpf_jit_limit) does not bind: guests use that up.
    let filter = security::seccomp(
        &plan.record.security,
        plan.record.arch,
        plan.record.network.hides_sockets,
    );
    security::install(&filter).map_err(|error| (Step::Filter, error.into_kernel()))?;
    // The mount namespace is joined last, with no more capabilities than guest root has: of a guest
    // that is still being launched it is the host's, and the kernel then refuses it. It is opened
    // first: with the guest's capabilities an init that runs without exec cannot be inspected
    // (ptrace(2), dumpable).
    let join = |error| (Step::Join, error);
    let mounts = sys::namespace(plan.init.as_fd(), Namespace::Mount).map_err(join)?;
    sys::join(plan.init.as_fd(), plan.joined).map_err(join)?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))
        .map_err(at(Step::Join))?;
    drop(mounts);
    set_thread_groups(&[]).map_err(at(Step::Credentials))?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(at(Step::Credentials))?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(at(Step::Credentials))?;
    umask(Mode::from_raw_mode(0o022));
    let _ = setsid();
    let user = user(plan.command, plan.record.ids.count).map_err(|error| (Step::User, error))?;
    if plan.streams.has_terminal() {
        let terminals = plan.streams.terminals();
        let (_, terminal) = open_console(parent, terminals, first_of(terminals))
            .map_err(|error| (Step::Console, error))?;
        ioctl_tiocsctty(&terminal).map_err(at(Step::Console))?;
        // As login(1) does, so that the user can open it by its name.
        fchown(&terminal, Some(Uid::from_raw(user.uid)), None).map_err(at(Step::Console))?;
    }
    change_directory(plan.command, &user).map_err(at(Step::Directory))?;
    sys::reset_signals();
    let kernel = |step| move |error: security::Error| (step, error.into_kernel());
    let bound =
        security::bounding_set(&plan.record.security).map_err(kernel(Step::Capabilities))?;
    security::apply_caps(bound).map_err(kernel(Step::Capabilities))?;
    become_user(&user).map_err(at(Step::Credentials))?;
    let env = environment(plan.command, &user, plan.streams.has_terminal());
    Ok((user, env))
}

fn user(command: &Command, ids: u32) -> io::Result<User> {
    let wanted = command.user.as_deref().unwrap_or("root");
    let passwd = read_list("/etc/passwd")?;
    let group = read_list("/etc/group")?;
    User::find(wanted, &passwd, &group, ids).ok_or_else(|| Errno::NOENT.into())
}

/// How much of a guest's /etc/passwd or /etc/group is read, in bytes.
const LIST_MAX: u64 = 1 << 20;

/// A list that cannot be read is empty, unless that is for want of something: root would be without
/// its groups.
fn read_list(path: &str) -> io::Result<String> {
    match read(path) {
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE) => Err(error),
            _ => Ok(String::new()),
        },
        list => list,
    }
}

/// Reads a file of the guest's, which may be huge, or a FIFO without a writer.
fn read(path: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(LIST_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn change_directory(command: &Command, user: &User) -> rustix::io::Result<()> {
    match &command.directory {
        Some(directory) => chdir(directory.as_str()),
        // As login(1) does when the home is missing.
        None => chdir(user.home.as_str()).or_else(|_| chdir("/")),
    }
}

fn become_user(user: &User) -> rustix::io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    set_thread_groups(&groups)?;
    let (gid, uid) = (Gid::from_raw(user.gid), Uid::from_raw(user.uid));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

fn environment(command: &Command, user: &User, terminal: bool) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = [
        ("PATH", PATH),
        ("HOME", &user.home),
        ("USER", &user.name),
        ("LOGNAME", &user.name),
        ("SHELL", &user.shell),
        ("container", "holm"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    if terminal {
        let term = std::env::var("TERM").unwrap_or_else(|_| "linux".to_owned());
        env.insert("TERM".to_owned(), term);
    }
    env.extend(command.env.clone());
    env
}

/// Executes the command, or a login shell; returns why that failed.
fn execute(command: &Command, user: &User, env: &BTreeMap<String, String>) -> io::Error {
    let text = |text: String| CString::new(text).unwrap_or_default();
    let env: Vec<CString> = env.iter().map(|(key, value)| text(format!("{key}={value}"))).collect();
    let env: Vec<&CStr> = env.iter().map(CString::as_c_str).collect();
    let Some(program) = command.argv.first() else {
        // A dash before the name makes a shell a login shell.
        let name = user.shell.rsplit('/').next().unwrap_or("sh");
        let argv = text(format!("-{name}"));
        return sys::exec(CWD, &text(user.shell.clone()), &[&argv], &env);
    };
    let argv: Vec<CString> = command.argv.iter().map(|argument| text(argument.clone())).collect();
    let argv: Vec<&CStr> = argv.iter().map(CString::as_c_str).collect();
    if program.contains('/') {
        return sys::exec(CWD, argv[0], &argv, &env);
    }
    let path = command.env.get("PATH").map_or(PATH, String::as_str);
    let mut failure = io::Error::from(Errno::NOENT);
    for directory in path.split(':') {
        let error = sys::exec(CWD, &text(format!("{directory}/{program}")), &argv, &env);
        if error.kind() != io::ErrorKind::NotFound {
            failure = error;
        }
    }
    failure
}
