//! Making processes: namespaces, placement, descriptors of processes, system call filters.

use std::os::fd::AsFd;
use std::path::Path;

use holm_sys::process::flags;
use rustix::fs::{Mode, OFlags};

use super::child;
use super::finding::Answer;
use super::machine::Machine;
use crate::cgroup::Layout;
use crate::process::run_in_child;

pub(super) fn user_namespaces(_: &Machine) -> Answer {
    Answer::from(
        child::user_namespace(1 << 26).map(|_| "made with an id range of its own".to_owned()),
    )
}

/// Every other namespace of a guest.
pub(super) fn namespaces(_: &Machine) -> Answer {
    const ALL: [(u64, &str); 6] = [
        (flags::NEWNS, "mount"),
        (flags::NEWPID, "pid"),
        (flags::NEWUTS, "uts"),
        (flags::NEWIPC, "ipc"),
        (flags::NEWNET, "network"),
        (flags::NEWCGROUP, "cgroup"),
    ];
    let together = ALL.iter().fold(0, |bits, (flag, _)| bits | flag);
    if run_in_child(together, None, || Ok(String::new())).is_ok() {
        return Answer::Yes(ALL.map(|(_, name)| name).join(", "));
    }
    let missing = |(flag, name): &(u64, &str)| {
        let tried = run_in_child(*flag, None, || Ok(String::new()));
        tried.err().map(|error| format!("{name}: {error}"))
    };
    Answer::No(ALL.iter().filter_map(missing).collect::<Vec<_>>().join(", "))
}

pub(super) fn time_namespaces(_: &Machine) -> Answer {
    Answer::from(run_in_child(0, None, || {
        let made = holm_sys::process::unshare(flags::NEWTIME);
        made.map(|()| "each guest's uptime counts from its own start".to_owned())
            .map_err(|error| error.to_string())
    }))
}

/// Clones into the very cgroup that this process is in: allowed wherever it may be.
pub(super) fn clone_into_cgroup(_: &Machine) -> Answer {
    let place = || {
        let layout = Layout::probe().map_err(|error| error.to_string())?;
        let mine =
            std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let path = own_cgroup(&mine).ok_or("this process is in no cgroup of the v2 hierarchy")?;
        let dir = layout.v2_root().join(path);
        rustix::fs::open(&dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| format!("{}: {error}", dir.display()))
    };
    Answer::from(place().and_then(|dir| {
        run_in_child(0, Some(dir.as_fd()), || {
            Ok("a guest's init is cloned into its cgroup".to_owned())
        })
    }))
}

/// The path in the v2 hierarchy, without its leading slash, that the text of `/proc/PID/cgroup`
/// names.
pub fn own_cgroup(text: &str) -> Option<&Path> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(path.strip_suffix(" (deleted)").unwrap_or(path)))
}

pub(super) fn pidfds(_: &Machine) -> Answer {
    let tried = child::while_alive(0, |_, pidfd| {
        holm_sys::process::namespace(pidfd, holm_sys::process::Namespace::Net)
    });
    match tried.map(|(_, pidfd)| holm_sys::bare::exit_status_of(pidfd.as_fd()).is_some()) {
        Ok(true) => Answer::Yes("they give namespaces and exit status".to_owned()),
        Ok(false) => Answer::Partly(
            "they give namespaces; the exit status only to the parent (until 6.15)".to_owned(),
        ),
        Err(error) => Answer::No(error.to_string()),
    }
}

pub(super) fn filters(_: &Machine) -> Answer {
    // `return ALLOW`
    let allow = holm_sys::seccomp::Instruction { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };
    Answer::from(run_in_child(0, None, || {
        holm_sys::seccomp::install(&[allow]).map_err(|error| error.to_string())?;
        Ok("system calls can be filtered".to_owned())
    }))
}
