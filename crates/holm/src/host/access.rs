//! What this process is allowed to do.

use super::finding::Answer;
use super::machine::Machine;
use crate::security::caps;

/// What starting a guest takes.
const NEEDED: [&str; 13] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "NET_ADMIN",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_ADMIN",
    "MKNOD",
];
/// What Holm uses where it has it.
const USEFUL: [&str; 2] = ["SYS_RESOURCE", "SETFCAP"];

pub(super) fn capabilities(_: &Machine) -> Answer {
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => judge_capabilities(&status),
        Err(error) => Answer::Partly(format!("/proc/self/status: {error}")),
    }
}

/// Judges the `CapEff` line of a `/proc/PID/status`.
pub(super) fn judge_capabilities(status: &str) -> Answer {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(has) = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else {
        return Answer::Partly("/proc/self/status has no CapEff line".to_owned());
    };
    let missing = |names: &[&str]| -> Vec<String> {
        let is_missing = |name: &&&str| caps::bit(name).is_some_and(|bit| has & bit == 0);
        names.iter().filter(is_missing).map(|name| format!("CAP_{name}")).collect()
    };
    let (needed, useful) = (missing(&NEEDED), missing(&USEFUL));
    if !needed.is_empty() {
        Answer::No(format!("without {}", needed.join(", ")))
    } else if !useful.is_empty() {
        Answer::Partly(format!("without {}", useful.join(", ")))
    } else {
        Answer::Yes("all that Holm uses".to_owned())
    }
}

/// Whether Ubuntu's `AppArmor` denies capabilities in user namespaces to programs without a
/// profile.
pub(super) fn apparmor(_: &Machine) -> Answer {
    match std::fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") {
        Ok(text) if text.trim() == "1" => Answer::Partly(
            "user namespaces of unprivileged programs have no capabilities".to_owned(),
        ),
        _ => Answer::Yes("user namespaces are not restricted".to_owned()),
    }
}

/// Loading and attaching BPF programs.
pub(super) fn bpf(_: &Machine) -> Answer {
    use holm_sys::bpf::{Hook, Instruction};
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsFd;

    /// r0 = 1; exit
    const LET_PASS: [Instruction; 2] = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let tried = || {
        holm_sys::bpf::load(Hook::Bind4, &LET_PASS)
            .map_err(|error| format!("cannot load a program: {error}"))?;
        let layout = crate::cgroup::Layout::probe().map_err(|error| error.to_string())?;
        let root =
            rustix::fs::open(layout.v2_root(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| error.to_string())?;
        holm_sys::bpf::count_attached(root.as_fd(), Hook::Bind4)
            .map_err(|error| format!("cgroups take no programs: {error}"))?;
        Ok("programs load, cgroups take them".to_owned())
    };
    Answer::from(tried())
}
