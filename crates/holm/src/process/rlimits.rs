use std::collections::BTreeMap;
use std::io;

use rustix::process::{Pid, Resource, Rlimit as Kernel, getrlimit, prlimit};

use super::{Error, Result};
use crate::config::Rlimit;

/// Every limit that guest.toml can name.
const RESOURCES: [(&str, Resource); 16] = [
    ("as", Resource::As),
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::Fsize),
    ("locks", Resource::Locks),
    ("memlock", Resource::Memlock),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("rss", Resource::Rss),
    ("rtprio", Resource::Rtprio),
    ("rttime", Resource::Rttime),
    ("sigpending", Resource::Sigpending),
    ("stack", Resource::Stack),
];

/// What every guest gets, independent of the caller's limits: systemd's defaults
/// (systemd-system.conf(5)).
const DEFAULTS: [(&str, Resource, Rlimit); 3] = [
    ("nofile", Resource::Nofile, Rlimit { soft: 1024, hard: 524_288 }),
    ("memlock", Resource::Memlock, Rlimit { soft: 8 << 20, hard: 8 << 20 }),
    ("core", Resource::Core, Rlimit { soft: 0, hard: Rlimit::UNLIMITED }),
];

/// Sets the resource limits of a process that is to run a guest's programs; `None` is the caller.
pub fn set(pid: Option<i32>, wanted: &BTreeMap<String, Rlimit>) -> Result<()> {
    let pid = pid.and_then(Pid::from_raw);
    for (_, resource, limit) in
        DEFAULTS.into_iter().filter(|(name, ..)| !wanted.contains_key(*name))
    {
        if prlimit(pid, resource, kernel(limit)).is_err() {
            // Without CAP_SYS_RESOURCE a limit that the caller has lowered stays low. That is no
            // error: guest.toml does not set this limit, it is only the default.
            let hard = getrlimit(resource).maximum.unwrap_or(limit.hard).min(limit.hard);
            let limit = Rlimit { soft: limit.soft.min(hard), hard };
            let _ = prlimit(pid, resource, kernel(limit));
        }
    }
    for (name, limit) in wanted {
        let known = RESOURCES.iter().find(|(known, _)| known == name);
        let refused = |source| Error::Rlimit { name: name.clone(), source };
        let (_, resource) = known.ok_or_else(|| refused(io::ErrorKind::Unsupported.into()))?;
        prlimit(pid, *resource, kernel(*limit)).map_err(|errno| refused(errno.into()))?;
    }
    Ok(())
}

fn kernel(limit: Rlimit) -> Kernel {
    let bound = |value| (value != Rlimit::UNLIMITED).then_some(value);
    Kernel { current: bound(limit.soft), maximum: bound(limit.hard) }
}
