//! The keys of a guest's system, and of its limits.

use super::super::choices::{ARCHS, DISK_KINDS, INITS, RESTARTS};
use super::super::input::{arguments, autostart, choice, choice_name, flag, one, service, shown};
use super::super::key::Effect::{Live, NextStart};
use super::super::key::{Key, Kind};
use super::super::types::Signal;
use super::super::{units, values};

const RESTART_KIND: Kind = Kind::Choice(&["no", "on-failure", "always"]);

pub const KEYS: [Key; 24] = [
    Key {
        name: "base",
        kind: Kind::Text,
        default: "none: it must be given",
        effect: NextStart,
        help: "the base that the guest stands on (`holm base ls`)",
        set: |c, i| one(i, values::name).map(|v| c.base = v),
        show: |c, _| shown(Some(&c.base).filter(|b| !b.is_empty()), Clone::clone),
    },
    Key {
        name: "init",
        kind: Kind::Choice(&["system", "minimal"]),
        default: "system; minimal when there is a command or a service",
        effect: NextStart,
        help: "process 1: the base's own (systemd, sysvinit, OpenRC, runit), or Holm's small one",
        set: |c, i| choice(i, &INITS).map(|v| c.init = v),
        show: |c, _| choice_name(c.init, &INITS),
    },
    Key {
        name: "command",
        kind: Kind::Arguments,
        default: "none",
        effect: NextStart,
        help: "what minimal init runs; the guest ends with it",
        set: |c, i| arguments(i).map(|v| c.command = v),
        show: |c, _| c.command.clone(),
    },
    Key {
        name: "services.*.command",
        kind: Kind::Arguments,
        default: "none: each service needs one",
        effect: NextStart,
        help: "a program that minimal init keeps",
        set: |c, i| {
            let command = arguments(i)?;
            service(c, i).map(|s| s.command = command)
        },
        show: |c, n| {
            c.services.iter().find(|s| s.name == n).map(|s| s.command.clone()).unwrap_or_default()
        },
    },
    Key {
        name: "services.*.restart",
        kind: RESTART_KIND,
        default: "no",
        effect: NextStart,
        help: "start the service again when it ends",
        set: |c, i| {
            let restart = choice(i, &RESTARTS)?;
            service(c, i).map(|s| s.restart = restart)
        },
        show: |c, n| {
            let service = c.services.iter().find(|s| s.name == n);
            service.map(|s| choice_name(s.restart, &RESTARTS)).unwrap_or_default()
        },
    },
    Key {
        name: "arch",
        kind: Kind::Choice(&["native", "i686"]),
        default: "native",
        effect: NextStart,
        help: "the machine that `uname -m` names; i686 for 32-bit bases on x86_64",
        set: |c, i| choice(i, &ARCHS).map(|v| c.arch = v),
        show: |c, _| choice_name(c.arch, &ARCHS),
    },
    Key {
        name: "hostname",
        kind: Kind::Text,
        default: "the guest's name",
        effect: NextStart,
        help: "host name inside",
        set: |c, i| one(i, values::hostname).map(|v| c.hostname = Some(v)),
        show: |c, _| shown(c.hostname.as_ref(), Clone::clone),
    },
    Key {
        name: "stop.signal",
        kind: Kind::Text,
        default: "what init understands: SIGRTMIN+3 for systemd, `init 0` for sysvinit, OpenRC and runit, else SIGTERM",
        effect: NextStart,
        help: "signal that asks init to end",
        set: |c, i| one(i, Signal::parse).map(|v| c.stop.signal = Some(v)),
        show: |c, _| shown(c.stop.signal, |s| s.to_string()),
    },
    Key {
        name: "stop.timeout",
        kind: Kind::Time,
        default: "30s",
        effect: Live,
        help: "how long `stop` waits before it kills",
        set: |c, i| one(i, units::duration).map(|v| c.stop.timeout = v),
        show: |c, _| vec![units::show_duration(c.stop.timeout)],
    },
    Key {
        name: "autostart",
        kind: Kind::FlagOrCount,
        default: "false",
        effect: Live,
        help: "start at boot; a number gives the place in the order, true is 100",
        set: |c, i| one(i, autostart).map(|v| c.autostart = v),
        show: |c, _| {
            shown(Some(c.autostart), |a| a.map_or("false".to_owned(), |a| a.order.to_string()))
        },
    },
    Key {
        name: "restart",
        kind: RESTART_KIND,
        default: "no",
        effect: Live,
        help: "start the guest again when its init ends by itself",
        set: |c, i| choice(i, &RESTARTS).map(|v| c.restart = v),
        show: |c, _| choice_name(c.restart, &RESTARTS),
    },
    Key {
        name: "protect",
        kind: Kind::Bool,
        default: "false",
        effect: Live,
        help: "refuse `holm rm`",
        set: |c, i| flag(i).map(|v| c.protect = v),
        show: |c, _| vec![c.protect.to_string()],
    },
    Key {
        name: "share",
        kind: Kind::Bool,
        default: "true",
        effect: Live,
        help: "`holm unify` may make one file of those that it has in common with other guests",
        set: |c, i| flag(i).map(|v| c.unshared = !v),
        show: |c, _| vec![(!c.unshared).to_string()],
    },
    Key {
        name: "cpu.share",
        kind: Kind::Count,
        default: "100",
        effect: Live,
        help: "weight against other guests when CPUs are short, 1 to 10000",
        set: |c, i| {
            let share = one(i, |t| units::count(t, 1, 10_000))?;
            c.cpu.share = u32::try_from(share).ok();
            Ok(())
        },
        show: |c, _| shown(c.cpu.share, |s| s.to_string()),
    },
    Key {
        name: "cpu.cap",
        kind: Kind::Cpus,
        default: "none",
        effect: Live,
        help: "at most so much CPU time: 1.5 CPUs, or 25% of one",
        set: |c, i| one(i, units::cpus).map(|v| c.cpu.cap = Some(v)),
        show: |c, _| shown(c.cpu.cap, |v| v.to_string()),
    },
    Key {
        name: "cpu.set",
        kind: Kind::Text,
        default: "all",
        effect: Live,
        help: "CPUs it may run on: 0-3,6",
        set: |c, i| one(i, values::cpu_set).map(|v| c.cpu.set = Some(v)),
        show: |c, _| shown(c.cpu.set.as_ref(), Clone::clone),
    },
    Key {
        name: "memory.limit",
        kind: Kind::Size,
        default: "none",
        effect: Live,
        help: "memory of all its processes and its page cache",
        set: |c, i| one(i, units::size).map(|v| c.memory.limit = Some(v)),
        show: |c, _| shown(c.memory.limit, units::show_size),
    },
    Key {
        name: "memory.swap",
        kind: Kind::Size,
        default: "none",
        effect: Live,
        help: "swap beyond memory.limit",
        set: |c, i| one(i, units::size).map(|v| c.memory.swap = Some(v)),
        show: |c, _| shown(c.memory.swap, units::show_size),
    },
    Key {
        name: "memory.shm",
        kind: Kind::Size,
        default: "512M",
        effect: NextStart,
        help: "size of /dev/shm (what is in it counts against memory.limit)",
        set: |c, i| one(i, units::size).map(|v| c.memory.shm = v),
        show: |c, _| vec![units::show_size(c.memory.shm)],
    },
    Key {
        name: "memory.lock",
        kind: Kind::Size,
        default: "8M",
        effect: NextStart,
        help: "memory that one process may lock (RLIMIT_MEMLOCK)",
        set: |c, i| one(i, units::size).map(|v| c.memory.lock = Some(v)),
        show: |c, _| shown(c.memory.lock, units::show_size),
    },
    Key {
        name: "pids.limit",
        kind: Kind::Count,
        default: "4096; none on hybrid hosts",
        effect: Live,
        help: "processes and threads together",
        set: |c, i| one(i, |t| units::count(t, 1, 1 << 22)).map(|v| c.pids.limit = Some(v)),
        show: |c, _| shown(c.pids.limit, |n| n.to_string()),
    },
    Key {
        name: "disk.kind",
        kind: Kind::Choice(&["overlay", "plain", "memory", "read-only"]),
        default: "overlay",
        effect: NextStart,
        help: "where its own files are: above the base, with a copy of it, in memory, nowhere",
        set: |c, i| choice(i, &DISK_KINDS).map(|v| c.disk.kind = v),
        show: |c, _| choice_name(c.disk.kind, &DISK_KINDS),
    },
    Key {
        name: "disk.size",
        kind: Kind::Size,
        default: "none",
        effect: Live,
        help: "bytes that its own files may take, at least 16M",
        set: |c, i| one(i, values::disk_size).map(|v| c.disk.size = Some(v)),
        show: |c, _| shown(c.disk.size, units::show_size),
    },
    Key {
        name: "disk.inodes",
        kind: Kind::Count,
        default: "none",
        effect: Live,
        help: "files and directories of its own that it may have, at least 64",
        set: |c, i| one(i, |t| units::count(t, 64, 1 << 31)).map(|v| c.disk.inodes = Some(v)),
        show: |c, _| shown(c.disk.inodes, |n| n.to_string()),
    },
];
