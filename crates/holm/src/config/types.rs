//! The typed form of `guest.toml`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that is configured about one guest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Name of the base the guest stands on. Never empty once a file is parsed.
    pub base: String,
    /// Which program is process 1.
    pub init: Init,
    /// What minimal init runs, with its arguments; empty for none.
    pub command: Vec<String>,
    /// What minimal init keeps running, in the order of the file.
    pub services: Vec<Service>,
    /// What `uname -m` reports.
    pub arch: Arch,
    /// Host name inside; `None` means the guest's name.
    pub hostname: Option<String>,
    /// How the guest is stopped.
    pub stop: Stop,
    /// Start at boot, and in which order; `None` means no.
    pub autostart: Option<Autostart>,
    /// Start again when init ends by itself.
    pub restart: Restart,
    /// Refuse `rm`.
    pub protect: bool,
    /// `share = false`: files that it has in common with other guests stay its own.
    pub unshared: bool,
    /// Processor limits.
    pub cpu: Cpu,
    /// Memory limits.
    pub memory: Memory,
    /// Limit on processes.
    pub pids: Pids,
    /// What its private layer is, and how large it may become.
    pub disk: Disk,
    /// Network.
    pub net: Net,
    /// Host directories and files bound into the guest, in the order of the file.
    pub mounts: Vec<BindMount>,
    /// Volumes of the Holm root mounted in the guest, in the order of the file.
    pub volumes: Vec<VolumeMount>,
    /// Host device nodes passed by name, each directly or deeper below `/dev`.
    pub devices: Vec<PathBuf>,
    /// Environment of init (or of the command and the services under minimal init).
    pub env: BTreeMap<String, String>,
    /// Resource limits of init, by their name in lower case (`nofile`).
    pub rlimits: BTreeMap<String, Rlimit>,
    /// Capabilities and permissions.
    pub security: Security,
    /// Public keys (whole lines of `authorized_keys`) that may log in as root.
    pub ssh_keys: Vec<String>,
}

/// Which program is process 1 of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Init {
    /// The base's own: systemd, sysvinit, `OpenRC`, runit.
    #[default]
    System,
    /// Holm's own small init.
    Minimal,
}

/// A service that minimal init runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name, letters, digits, `-` and `_`.
    pub name: String,
    /// Program and arguments; never empty once a file is parsed.
    pub command: Vec<String>,
    /// Start it again when it ends.
    pub restart: Restart,
}

/// The machine that a guest's programs see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Arch {
    /// The host's.
    #[default]
    Native,
    /// 32-bit x86 by personality; only on `x86_64` hosts.
    I686,
}

/// How a guest is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Signal for init; `None` means the one its kind understands.
    pub signal: Option<Signal>,
    /// How long `stop` waits before it kills the guest.
    pub timeout: Duration,
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: None, timeout: Duration::from_secs(30) }
    }
}

/// A signal by number, 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(pub i32);

/// Start at the host's boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autostart {
    /// Guests start in rising order; equal ones together.
    pub order: u32,
}

/// When something that ended by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// When its exit status was not 0 or a signal killed it.
    OnFailure,
    /// Always.
    Always,
}

/// Processor limits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cpu {
    /// Weight against other guests, 1 to 10000; 100 is normal.
    pub share: Option<u32>,
    /// The most CPU time it may use, as a number of CPUs (1.5).
    pub cap: Option<f64>,
    /// CPUs the guest may run on, in the kernel's list form (`0-3,6`).
    pub set: Option<String>,
}

/// Memory limits, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Anonymous memory and page cache together.
    pub limit: Option<u64>,
    /// Swap, beyond `limit`.
    pub swap: Option<u64>,
    /// Size of `/dev/shm`.
    pub shm: u64,
    /// Locked memory of each process (`RLIMIT_MEMLOCK`).
    pub lock: Option<u64>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { limit: None, swap: None, shm: 512 << 20, lock: None }
    }
}

/// Limit on processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pids {
    /// Processes and threads together.
    pub limit: Option<u64>,
}

/// What a guest's private layer is, and how large it may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// Where the guest's own files are.
    pub kind: DiskKind,
    /// How many bytes its files may take.
    pub size: Option<u64>,
    /// How many files and directories it may have.
    pub inodes: Option<u64>,
}

/// Where a guest's own files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskKind {
    /// On the disk, above the base.
    #[default]
    Overlay,
    /// On the disk, with a copy of the base's.
    Plain,
    /// In memory, above the base, and gone when the guest ends.
    Memory,
    /// Nowhere: only its volumes can be written to.
    ReadOnly,
}

/// Network of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
pub struct Net {
    /// Which stack the guest uses.
    pub mode: NetMode,
    /// Fixed addresses. A private guest has at most one of IPv4 and one of IPv6, and a missing one
    /// comes from the pool; a native guest has several that are the host's, or none.
    pub address: Vec<IpAddr>,
    /// The interface that gets the addresses of a native guest which the host does not have.
    pub interface: Option<String>,
    /// The IPv4 address of a native guest is also that of others, and of the host.
    pub share_address: bool,
    /// A native guest cannot list the sockets of the host and of other guests.
    pub hide_sockets: bool,
    /// Ports of the host that lead to ports of the guest.
    pub publish: Vec<Publish>,
    /// Ports of the host that lead to the same ports of the guest, the lowest to its ssh.
    pub ports: Option<Ports>,
    /// Other guests may reach this guest, and it them.
    pub peers: bool,
    /// It may open connections to services of the host.
    pub host_access: bool,
    /// Connections that are refused, or dropped when others open them.
    pub deny: Vec<AccessRule>,
    /// Exceptions from `deny`.
    pub allow: Vec<AccessRule>,
    /// The connections that a private guest opens are recorded.
    pub flows: bool,
    /// Its interfaces in networks of the host's.
    pub lan: Vec<Lan>,
    /// Its routers there, one of each family at most.
    pub gateway: Vec<IpAddr>,
    /// It and the others that have this set resolve one another's names.
    pub names: bool,
    /// Name servers; empty means the host's.
    pub dns: Vec<IpAddr>,
    /// Bits in a second that it can always send through the uplink.
    pub reserve: Option<u64>,
    /// Its weight, 1 to 1000, against others that send more than is reserved for them.
    pub share: Option<u32>,
    /// Bits in a second that it sends at most through the uplink.
    pub cap: Option<u64>,
}

impl Default for Net {
    fn default() -> Self {
        Self {
            mode: NetMode::Private,
            address: Vec::new(),
            interface: None,
            share_address: false,
            hide_sockets: false,
            publish: Vec::new(),
            ports: None,
            peers: true,
            names: false,
            host_access: false,
            deny: Vec::new(),
            allow: Vec::new(),
            flows: false,
            lan: Vec::new(),
            gateway: Vec::new(),
            dns: Vec::new(),
            reserve: None,
            share: None,
            cap: None,
        }
    }
}

/// Which network stack a guest uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetMode {
    /// Its own, routed and behind the host's address.
    #[default]
    Private,
    /// Its own, with a loopback interface only.
    None,
    /// The host's, without isolation.
    Host,
    /// The host's, with addresses of its own.
    Native,
}

/// An interface in a network of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Lan {
    /// How it gets there.
    pub kind: LanKind,
    /// The host's bridge, or the interface below the macvlan.
    pub parent: String,
    /// Its addresses, each with the length of the network's prefix. Without any the guest gets some
    /// itself.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// How an interface gets into a network of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanKind {
    /// By a veth pair whose other end is a port of a bridge.
    Bridge,
    /// As a macvlan on an interface.
    Macvlan,
}

/// One published port. A range in the file becomes one of these for each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Publish {
    /// The host's address to listen on; `None` means all.
    pub host_ip: Option<IpAddr>,
    /// The host's port, 1 to 65535.
    pub host_port: u16,
    /// The guest's port, 1 to 65535.
    pub guest_port: u16,
    /// Protocol.
    pub proto: Proto,
}

/// The range of ports that a guest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ports {
    /// So many, 1 to [`Ports::AUTO_MAX`], that its context id tells.
    Auto(u16),
    /// From the first to the last of these.
    Range(u16, u16),
}

impl Ports {
    /// The most ports of a range that is not given: every context id has a block of so many.
    pub const AUTO_MAX: u16 = 32;
}

/// Connections that `net.deny` or `net.allow` names, by who opens them: UDP and ICMP as the host's
/// connection tracking sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessRule {
    /// Who opens them.
    pub direction: Direction,
    /// Their protocol; `None` means any.
    pub protocol: Option<Protocol>,
    /// With whom; `None` means everybody.
    pub peer: Option<Prefix>,
}

/// Who opens a connection of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Others.
    In,
    /// The guest.
    Out,
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `ICMP` and `ICMPv6`.
    Icmp,
    /// One with ports: to any port, or to those from the first to the last.
    Ports(Proto, Option<(u16, u16)>),
}

/// The addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits are alike.
    pub length: u8,
}

/// Protocol of a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proto {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A host directory or file bound into a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindMount {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the guest, without `..`.
    pub target: PathBuf,
    /// The guest cannot write there.
    pub read_only: bool,
}

/// A volume mounted in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeMount {
    /// The volume's name.
    pub name: String,
    /// Absolute path in the guest, without `..`.
    pub target: PathBuf,
    /// The most that it may hold, in bytes.
    pub size: Option<u64>,
    /// The guest cannot write there.
    pub read_only: bool,
}

/// A resource limit in its kernel unit; [`Rlimit::UNLIMITED`] for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rlimit {
    /// The limit in force.
    pub soft: u64,
    /// What a process may raise it to.
    pub hard: u64,
}

impl Rlimit {
    /// The kernel's `RLIM_INFINITY`.
    pub const UNLIMITED: u64 = u64::MAX;
}

/// Privileges of a guest, beyond or below the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Security {
    /// Changes to the default bounding set: `CAP_X` keeps one more, `-CAP_X` one less.
    pub caps: Vec<String>,
    /// The guest may run containers: a range of 2^18 ids.
    pub nesting: bool,
    /// Allow userfaultfd(2).
    pub userfaultfd: bool,
    /// Allow packet sockets with rings, whose memory no limit counts.
    #[serde(default)]
    pub packet_rings: bool,
}
