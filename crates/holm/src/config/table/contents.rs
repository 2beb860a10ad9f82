//! The keys of what is in a guest besides its files, and of what it may do.

use super::super::input::{each, flag, one, shown};
use super::super::key::Effect::NextStart;
use super::super::key::{Invalid, Key, Kind};
use super::super::types::Rlimit;
use super::super::values;

pub const KEYS: [Key; 10] = [
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
