//! The table of all keys.

use super::choices::{ARCHS, DISK_KINDS, INITS, MODES, RESTARTS};
use super::input::{arguments, autostart, choice, choice_name, each, flag, one, service, shown};
use super::key::Effect::{Live, NextStart};
use super::key::{Invalid, Key, Kind};
use super::types::{Rlimit, Signal};
use super::units;
use super::values;

const RESTART_KIND: Kind = Kind::Choice(&["no", "on-failure", "always"]);

/// All keys, in the order of the documentation.
pub(super) static KEYS: [Key; 49] = [
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
    Key {
        name: "net.mode",
        kind: Kind::Choice(&["private", "native", "none", "host"]),
        default: "private",
        effect: NextStart,
        help: "an own network stack behind the host's address, the host's stack with addresses of \
               its own, only loopback, or the host's stack",
        set: |c, i| choice(i, &MODES).map(|v| c.net.mode = v),
        show: |c, _| choice_name(c.net.mode, &MODES),
    },
    Key {
        name: "net.address",
        kind: Kind::List("10.97.0.5"),
        default: "from Holm's pool",
        effect: NextStart,
        help: "fixed addresses: of a private guest at most one IPv4 and one IPv6; of a native one \
               up to eight of each of the host's, which change at once if the first stays",
        set: |c, i| each(i, values::address).map(|v| c.net.address = v),
        show: |c, _| c.net.address.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.interface",
        kind: Kind::Text,
        default: "none: the host has the addresses",
        effect: NextStart,
        help: "interface of the host that has the addresses of a native guest while it runs",
        set: |c, i| one(i, values::interface).map(|v| c.net.interface = Some(v)),
        show: |c, _| shown(c.net.interface.as_ref(), Clone::clone),
    },
    Key {
        name: "net.hide-sockets",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "a native guest cannot list the sockets of the host and of other guests; while it runs, \
               only root can read the lists in the host's /proc/net",
        set: |c, i| flag(i).map(|v| c.net.hide_sockets = v),
        show: |c, _| vec![c.net.hide_sockets.to_string()],
    },
    Key {
        name: "net.publish",
        kind: Kind::List("8080:80/tcp"),
        default: "none",
        effect: NextStart,
        help: "host ports that lead into the guest: [ADDRESS:]HOST:GUEST[/tcp|/udp], also ranges",
        set: |c, i| each(i, values::publish).map(|v| c.net.publish = v.concat()),
        show: |c, _| c.net.publish.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.ports",
        kind: Kind::Text,
        default: "none",
        effect: NextStart,
        help: "host ports that lead to the same ports of the guest, the lowest to its ssh: auto:32, \
               the same at each start, or FIRST-LAST",
        set: |c, i| one(i, values::ports).map(|v| c.net.ports = Some(v)),
        show: |c, _| shown(c.net.ports, |v| v.to_string()),
    },
    Key {
        name: "net.peers",
        kind: Kind::Bool,
        default: "true",
        effect: NextStart,
        help: "it and other guests may reach each other",
        set: |c, i| flag(i).map(|v| c.net.peers = v),
        show: |c, _| vec![c.net.peers.to_string()],
    },
    Key {
        name: "net.host-access",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "it may reach services of the host, by any address of the host but loopback",
        set: |c, i| flag(i).map(|v| c.net.host_access = v),
        show: |c, _| vec![c.net.host_access.to_string()],
    },
    Key {
        name: "net.deny",
        kind: Kind::List("out:tcp:25"),
        default: "none",
        effect: Live,
        help: "connections that are refused, or dropped if others open them: in or out, then \
               [:tcp|:udp|:icmp][:PORT|:FIRST-LAST][@ADDRESS|@NETWORK], as in:tcp:22@203.0.113.0/24",
        set: |c, i| each(i, values::access_rule).map(|v| c.net.deny = v),
        show: |c, _| c.net.deny.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.allow",
        kind: Kind::List("out:tcp:443"),
        default: "none",
        effect: Live,
        help: "exceptions from net.deny, in the same form",
        set: |c, i| each(i, values::access_rule).map(|v| c.net.allow = v),
        show: |c, _| c.net.allow.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.flows",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "the connections that a private guest opens are recorded, for `holm flows`: from which \
               port of the host, to whom, and when",
        set: |c, i| flag(i).map(|v| c.net.flows = v),
        show: |c, _| vec![c.net.flows.to_string()],
    },
    Key {
        name: "net.dns",
        kind: Kind::List("192.0.2.53"),
        default: "the host's",
        effect: NextStart,
        help: "name servers",
        set: |c, i| each(i, values::address).map(|v| c.net.dns = v),
        show: |c, _| c.net.dns.iter().map(ToString::to_string).collect(),
    },
    Key {
        name: "net.reserve",
        kind: Kind::Rate,
        default: "none",
        effect: Live,
        help: "rate at which it can always send through the uplink; alone it is also the cap",
        set: |c, i| one(i, units::rate).map(|v| c.net.reserve = Some(v)),
        show: |c, _| shown(c.net.reserve, units::show_rate),
    },
    Key {
        name: "net.share",
        kind: Kind::Count,
        default: "none; 100 with net.cap alone",
        effect: Live,
        help: "weight, 1 to 1000, against others that send more than is reserved for them",
        set: |c, i| {
            let share = one(i, |t| units::count(t, 1, 1000))?;
            c.net.share = u32::try_from(share).ok();
            Ok(())
        },
        show: |c, _| shown(c.net.share, |v| v.to_string()),
    },
    Key {
        name: "net.cap",
        kind: Kind::Rate,
        default: "none",
        effect: Live,
        help: "at most so fast it sends through the uplink, and receives",
        set: |c, i| one(i, units::rate).map(|v| c.net.cap = Some(v)),
        show: |c, _| shown(c.net.cap, units::show_rate),
    },
    Key {
        name: "mounts",
        kind: Kind::List("/srv/data:/data:ro"),
        default: "none",
        effect: NextStart,
        help: "host directories or files bound into the guest: SOURCE:TARGET[:ro]",
        set: |c, i| each(i, values::mount).map(|v| c.mounts = v),
        show: |c, _| c.mounts.iter().map(values::show_mount).collect(),
    },
    Key {
        name: "volumes",
        kind: Kind::List("pg:/var/lib/postgresql"),
        default: "none",
        effect: NextStart,
        help: "volumes mounted in the guest: NAME:TARGET[:SIZE][:ro]; one that does not exist is \
               made at the start, with what the guest has at TARGET (`holm volume ls`)",
        set: |c, i| each(i, values::volume).map(|v| c.volumes = v),
        show: |c, _| c.volumes.iter().map(values::show_volume).collect(),
    },
    Key {
        name: "devices",
        kind: Kind::List("/dev/fuse"),
        default: "none",
        effect: NextStart,
        help: "host devices given to the guest",
        set: |c, i| each(i, values::device).map(|v| c.devices = v),
        show: |c, _| c.devices.iter().map(|d| d.display().to_string()).collect(),
    },
    Key {
        name: "env.*",
        kind: Kind::Text,
        default: "none",
        effect: NextStart,
        help: "an environment variable of init, or of minimal init's commands",
        set: |c, i| {
            let name = values::variable(i.name).map_err(Invalid::name)?;
            let value = one(i, |t| Ok(t.to_owned()))?;
            c.env.insert(name, value);
            Ok(())
        },
        show: |c, n| shown(c.env.get(n), Clone::clone),
    },
    Key {
        name: "rlimits.*",
        kind: Kind::Limits,
        default: "nofile 1024:524288, memlock 8M, core 0:unlimited, else the host's",
        effect: NextStart,
        help: "a resource limit of each process, LIMIT or SOFT:HARD, by its name (nofile, nproc, core)",
        set: |c, i| {
            values::rlimit_name(i.name).map_err(Invalid::name)?;
            let limit = one(i, |t| values::rlimit(i.name, t))?;
            c.rlimits.insert(i.name.to_owned(), limit);
            Ok(())
        },
        show: |c, n| shown(c.rlimits.get(n), |l: &Rlimit| values::show_rlimit(n, *l)),
    },
    Key {
        name: "security.caps",
        kind: Kind::List("-CAP_NET_RAW"),
        default: "none",
        effect: NextStart,
        help: "changes to the capabilities a guest can have: CAP_X for one more, -CAP_X for one less",
        set: |c, i| each(i, values::capability).map(|v| c.security.caps = v),
        show: |c, _| c.security.caps.clone(),
    },
    Key {
        name: "security.nesting",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "containers may run inside: the guest gets 2^18 ids",
        set: |c, i| flag(i).map(|v| c.security.nesting = v),
        show: |c, _| vec![c.security.nesting.to_string()],
    },
    Key {
        name: "security.userfaultfd",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "allow userfaultfd(2)",
        set: |c, i| flag(i).map(|v| c.security.userfaultfd = v),
        show: |c, _| vec![c.security.userfaultfd.to_string()],
    },
    Key {
        name: "security.packet-rings",
        kind: Kind::Bool,
        default: "false",
        effect: NextStart,
        help: "allow rings of packet sockets, as tcpdump uses them; no limit counts their memory",
        set: |c, i| flag(i).map(|v| c.security.packet_rings = v),
        show: |c, _| vec![c.security.packet_rings.to_string()],
    },
    Key {
        name: "ssh.keys",
        kind: Kind::List("ssh-ed25519 AAAA... me@here"),
        default: "none",
        effect: NextStart,
        help: "public keys that may log in as root, beside those in the guest's own file",
        set: |c, i| each(i, values::ssh_key).map(|v| c.ssh_keys = v),
        show: |c, _| c.ssh_keys.clone(),
    },
];
