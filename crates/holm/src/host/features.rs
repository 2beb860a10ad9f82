//! The table of features: what each is for, and what to do without.

use super::finding::{Answer, Finding, State};
use super::machine::Machine;
use super::{access, cgroups, core_dumps, disk, ids, kernel, layers, network, process, tools};

/// Something of the host that Holm uses.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// The name, in `holm doctor`.
    pub name: &'static str,
    /// Its state where the probe finds it missing.
    pub without: State,
    /// Whether no guest can start without it.
    pub needed: bool,
    /// What the user cannot do without it.
    pub cost: &'static str,
    /// A command, or what else to do, that mends it.
    pub remedy: &'static str,
    /// Cost and remedy where it is there in part, if they differ.
    pub(super) partly: Option<(&'static str, &'static str)>,
    pub(super) probe: Probe,
}

type Probe = fn(&Machine) -> Answer;

impl Feature {
    /// Without it no guest starts.
    const fn needed(
        name: &'static str,
        cost: &'static str,
        remedy: &'static str,
        probe: Probe,
    ) -> Self {
        Self { name, without: State::Missing, needed: true, cost, remedy, partly: None, probe }
    }

    /// Without it something cannot be done.
    const fn wanted(
        name: &'static str,
        cost: &'static str,
        remedy: &'static str,
        probe: Probe,
    ) -> Self {
        Self { needed: false, ..Self::needed(name, cost, remedy, probe) }
    }

    /// Without it something is done in a worse way.
    const fn extra(
        name: &'static str,
        cost: &'static str,
        remedy: &'static str,
        probe: Probe,
    ) -> Self {
        Self { without: State::Degraded, ..Self::wanted(name, cost, remedy, probe) }
    }

    const fn partly(self, cost: &'static str, remedy: &'static str) -> Self {
        Self { partly: Some((cost, remedy)), ..self }
    }

    /// What is reported of the feature when its probe answers so.
    pub(super) fn finding(&self, answer: Answer) -> Finding {
        let whole = (self.cost, self.remedy);
        let (state, detail, (cost, remedy)) = match answer {
            Answer::Yes(detail) => (State::Ok, detail, ("", "")),
            Answer::Partly(detail) => (State::Degraded, detail, self.partly.unwrap_or(whole)),
            Answer::No(detail) => (self.without, detail, whole),
            Answer::Untried(detail) => (State::Degraded, detail, UNTRIED),
        };
        let needed = self.needed;
        Finding { name: self.name, state, detail, needed, cost, remedy }
    }
}

const NEWER_KERNEL: &str = "boot a kernel of 6.12 or newer (Debian 12: apt install -t bookworm-backports linux-image-amd64)";
const AS_ROOT: &str = "run holm as root on the host, not inside a container (sudo holm doctor)";

/// Cost and remedy of a feature that could not be tried.
const UNTRIED: (&str, &str) =
    ("it is not known whether it is there", "mend `storage` or `capabilities`, and try again");

/// The feature that something can be written in the Holm root.
pub const STORAGE: &str = "storage";

/// The feature that the filesystem of the Holm root can hold guests.
pub const FILESYSTEM: &str = "filesystem";

/// Every feature, in the order of `holm doctor`.
pub const FEATURES: &[Feature] = &[
    Feature::needed(
        "kernel",
        "guests need system calls that older kernels do not have",
        NEWER_KERNEL,
        kernel::version,
    ),
    Feature::needed(
        "capabilities",
        "no guest starts",
        AS_ROOT,
        access::capabilities,
    )
    .partly(
        "limits above the host's own (open files, locked memory) cannot be given to guests",
        "nothing; the host, or the container that holm runs in, was started without it",
    ),
    Feature::needed(
        "user-namespace",
        "no guest starts: root inside would be root outside",
        "sysctl -w user.max_user_namespaces=65536",
        process::user_namespaces,
    ),
    Feature::needed(
        "namespaces",
        "no guest starts: it would see the host's processes or network",
        "raise the limits in /proc/sys/user (sysctl user), or boot a distribution's kernel",
        process::namespaces,
    ),
    Feature::extra(
        "time-namespace",
        "guests show the host's uptime, and their clocks jump when they are restored elsewhere",
        "boot a kernel with CONFIG_TIME_NS",
        process::time_namespaces,
    ),
    Feature::needed(
        "pidfd",
        "no guest starts",
        NEWER_KERNEL,
        process::pidfds,
    )
    .partly(
        "the exit status of a guest whose monitor was killed is unknown",
        "boot a kernel of 6.15 or newer",
    ),
    Feature::needed(
        "seccomp",
        "no guest starts: system calls that reach the host's kernel could not be kept from it",
        "boot a kernel with CONFIG_SECCOMP_FILTER",
        process::filters,
    ),
    Feature::needed(
        "cgroup",
        "no guest starts",
        "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with systemd.unified_cgroup_hierarchy=1",
        cgroups::layout,
    )
    .partly(
        "a start with limits takes some tenths of a millisecond longer, UDP buffers count against no limit, and guests can see the names of the host's cgroups",
        "boot with systemd.unified_cgroup_hierarchy=1",
    ),
    Feature::wanted(
        "controllers",
        "limits that need a missing controller are refused",
        "boot without cgroup_disable= and with the controllers' CONFIG_ options",
        cgroups::controllers,
    ),
    Feature::needed(
        "clone-into-cgroup",
        "no guest starts: it could run outside its limits for a moment",
        "boot a kernel of 5.7 or newer, and let no seccomp filter refuse clone3",
        process::clone_into_cgroup,
    ),
    Feature::needed(
        STORAGE,
        "no guest starts: nothing can be written in the Holm root",
        "make room there (df -h and df -i show what is used), or mount it read-write; dmesg tells of a disk that fails",
        disk::writable,
    ),
    Feature::needed(
        FILESYSTEM,
        "no guest starts: its layers have no place",
        "move the Holm root to ext4, XFS or btrfs (holm --root DIR)",
        disk::kind,
    )
    .partly(
        "guests are not tested there",
        "move the Holm root to ext4, XFS or btrfs (holm --root DIR)",
    ),
    Feature::needed(
        "erofs",
        "bases cannot be mounted",
        "modprobe erofs; keep the Holm root on ext4, XFS or btrfs (a file on tmpfs cannot be mounted)",
        layers::image,
    ),
    Feature::needed(
        "idmap",
        "no guest starts: files on disk would belong to the wrong users",
        "move the Holm root to ext4, XFS or btrfs (holm --root DIR)",
        layers::id_maps,
    ),
    Feature::needed(
        "overlay",
        "no guest starts: its changes have no place",
        "modprobe overlay; move the Holm root to ext4, XFS or btrfs (holm --root DIR)",
        layers::overlay,
    ),
    Feature::needed(
        "xattr",
        "no guest can delete or replace a file of its base",
        "move the Holm root to ext4, XFS or btrfs (holm --root DIR)",
        disk::attributes,
    ),
    Feature::extra(
        "reflink",
        "an import copies every file that it takes from a directory on the same filesystem",
        "XFS and btrfs have reflinks; nothing else is lost on ext4",
        disk::reflinks,
    ),
    Feature::extra(
        "quota",
        "a guest with disk.size gets a disk image on a loop device, which `holm unify` does not read; disk.size cannot be given to a guest that has files",
        "ext4: tune2fs -O quota,project on the unmounted disk, then mount it with prjquota; XFS: mount it with prjquota",
        disk::quota,
    ),
    Feature::extra(
        "id-ranges",
        "a user's own containers could have the user ids of a guest",
        "move the users' ranges in /etc/subuid and /etc/subgid below 67108864",
        ids::ranges,
    ),
    Feature::extra(
        "inotify",
        "systemd and its services in a guest fail: too few inotify instances",
        "sysctl -w fs.inotify.max_user_instances=1024",
        ids::inotify,
    ),
    Feature::extra(
        "keys",
        "services in a guest that keep keys in the kernel fail (EDQUOT)",
        "sysctl -w kernel.keys.maxkeys=2000 kernel.keys.maxbytes=200000",
        ids::keys,
    ),
    Feature::extra(
        "aio",
        "one guest can use up the asynchronous I/O contexts of the host and of all other guests",
        "sysctl -w fs.aio-max-nr=1073741824 (what `make install` puts into sysctl.d does so at boot)",
        ids::aio_contexts,
    ),
    Feature::extra(
        "terminals",
        "few guests can use up the terminals of all: others then do not start",
        "sysctl -w kernel.pty.max=16384 (what `make install` puts into sysctl.d does so at boot)",
        ids::terminals,
    ),
    Feature::extra(
        "orphans",
        "one guest can close so many TCP connections that those of all others are cut off at their end",
        "sysctl -w net.ipv4.tcp_max_orphans=1048576 (`make install` puts that into sysctl.d)",
        network::orphans,
    ),
    Feature::extra(
        "tcp-memory",
        "guests whose TCP connections have much queued slow down and reset those of all others",
        "sysctl -w net.ipv4.tcp_mem='1073741824 1073741824 1073741824' (`make install` puts that into sysctl.d)",
        network::tcp_memory,
    ),
    Feature::extra(
        "core-dumps",
        "one guest whose processes crash can make the host run any number of programs at once",
        "sysctl -w kernel.core_pipe_limit=16 (what `make install` puts into sysctl.d does so at boot)",
        core_dumps::bounded,
    ),
    Feature::wanted(
        "veth",
        "guests with a private network do not start; net.mode=none and host work",
        "modprobe veth",
        network::veth,
    ),
    Feature::wanted(
        "nftables",
        "guests reach nothing beyond the host, and ports cannot be published",
        "apt install nftables; modprobe nf_tables nf_nat",
        network::nftables,
    ),
    Feature::extra(
        "packet-log",
        "guests with net.flows do not start: nobody could record their connections; private ones send TCP \
         more slowly",
        "modprobe nfnetlink_log; boot a kernel with CONFIG_NETFILTER_NETLINK_LOG and CONFIG_NFT_LOG",
        network::packet_log,
    ),
    Feature::extra(
        "other-filters",
        "guests reach nothing beyond the host, or are not reached",
        "let guests' interfaces (h*) through, as said above",
        network::other_filters,
    ),
    Feature::extra(
        "resolver-filters",
        "guests that ask the host's own resolver find no names",
        "let queries by guests' interfaces (h*, port 53) through, as said above",
        network::resolver_filters,
    ),
    Feature::extra(
        "forwarding",
        "guests reach nothing beyond the host",
        "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
        network::forwarding,
    ),
    Feature::wanted(
        "bpf",
        "guests cannot share the host's network with addresses of their own",
        "boot a kernel with CONFIG_CGROUP_BPF",
        access::bpf,
    ),
    Feature::extra(
        "unix-names",
        "native guests reach abstract Unix sockets of the host and of one another",
        "boot with bpf in the list lsm=, a kernel with CONFIG_BPF_LSM and CONFIG_DEBUG_INFO_BTF",
        network::unix_names,
    ),
    Feature::extra(
        "apparmor",
        "browsers, nested containers and the like fail inside guests",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        access::apparmor,
    ),
    Feature::wanted(
        "criu",
        "guests cannot be checkpointed, restored or moved while they run",
        "apt install criu (4.1 or newer: Debian 13)",
        tools::criu,
    ),
];
