use std::net::IpAddr;
use std::sync::OnceLock;

use holm::config::{Arch, NetMode, Proto, Publish};
use holm::guest::{Status, Summary};
use holm::record::{PendingRestart, RunRecord};
use serde::Serialize;

use super::health::Health;
use super::lan::{Lan, interfaces};
use super::last_run::LastRun;
use super::limits::Limits;
use super::time::Time;
use super::traffic::{AccessRule, Traffic};

/// A guest at a glance.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Guest {
    /// Its name.
    name: String,
    /// What it is doing.
    state: State,
    /// Whether it is an ephemeral guest, one of `holm run`: it is gone when its command ends.
    ephemeral: bool,
    /// The base it stands on; null if that is not known.
    base: Option<String>,
    /// The machine that its programs see, as `uname -m` names it; null if it does not run.
    arch: Option<&'static str>,
    /// Its init's process id on the host; null if it does not run.
    init_pid: Option<i32>,
    /// The process id of its monitor on the host, or of the `holm run` that waits for it; null if
    /// it does not run.
    monitor_pid: Option<i32>,
    /// When this run was started; null if it does not run.
    started_at: Option<Time>,
    /// How long this run has gone on, in seconds of `CLOCK_BOOTTIME`.
    uptime_seconds: Option<u64>,
    /// Which network it has; null if it does not run.
    network: Option<Network>,
    /// Its addresses, IPv4 first, or as in `net.address` of a native guest, then those that
    /// `net.lan` sets; none if it does not run, or has none of its own.
    addresses: Vec<IpAddr>,
    /// Its interfaces in networks of the host's; none if it does not run.
    lan: Vec<Lan>,
    /// Its published ports; none if it does not run.
    ports: Vec<PublishedPort>,
    /// The uids and gids of the host that its users map to; null if it does not run.
    id_range: Option<IdRange>,
    /// What it may use, uses, and has used at most in this run.
    limits: Limits,
    /// What it has sent and received in this run; null if it does not run, or nobody counts that.
    traffic: Option<Traffic>,
    /// What its `net.allow` and `net.deny` have matched in this run; none if it does not run.
    access: Vec<AccessRule>,
    /// Whether its monitor and its readiness are as they should be.
    health: Health,
    /// How its last run ended; null before the first has.
    last_run: Option<LastRun>,
    /// The start that its monitor is waiting to make.
    pending_restart: Option<Pending>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// it does not run
    Stopped,
    /// its init runs, and has not reported that the guest is ready, or never does
    Running,
    /// its init has reported that it is ready
    Ready,
    /// all its processes are frozen
    Frozen,
    /// it has been asked to end, or its end is being recorded
    Stopping,
    /// it has ended, and its monitor will start it again
    Restarting,
    /// it could not be found out, and `health.problem` says why
    Unknown,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Network {
    /// The mode, as in `net.mode`.
    mode: &'static str,
    /// The host's end of its veth pair; null in other modes than `private`.
    host_interface: Option<String>,
    /// How fast it sends through the uplink; null without `net.reserve`, `net.share` and `net.cap`.
    rates: Option<Rates>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Rates {
    /// The uplink.
    uplink: String,
    /// The uplink's rate, in bits in a second.
    uplink_bits: u64,
    /// What it can always send, in bits in a second; null if nothing is reserved.
    reserve_bits: Option<u64>,
    /// Its weight for what is not reserved; null if it sends no more than its reservation, or has a
    /// cap alone.
    share: Option<u32>,
    /// What it sends at most, in bits in a second; null without a cap.
    cap_bits: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PublishedPort {
    /// The host's address that it is published on; null for all.
    host_address: Option<IpAddr>,
    /// The host's port.
    host_port: u16,
    /// The guest's port.
    guest_port: u16,
    /// `tcp` or `udp`.
    protocol: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IdRange {
    /// What 0 in the guest is on the host.
    first: u32,
    /// How many there are.
    count: u32,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Pending {
    /// When it will be made.
    at: Time,
    /// The number of this start among those in a row that its restart policy made.
    attempt: u32,
}

impl From<&Summary> for Guest {
    fn from(guest: &Summary) -> Self {
        let record = guest.record.as_ref();
        let last = guest.last.as_ref();
        let pending = |pending: &PendingRestart| Pending {
            at: Time::new(pending.at),
            attempt: last.map_or(0, |last| last.restarts),
        };
        Self {
            name: guest.name.to_string(),
            state: guest.status.into(),
            ephemeral: record.is_some_and(|record| record.ephemeral),
            base: Some(guest.base.clone()).filter(|base| !base.is_empty()),
            arch: record.map(|record| arch(record.arch)),
            init_pid: record.map(|record| record.init_pid).filter(|pid| *pid != 0),
            monitor_pid: record.map(|record| record.monitor_pid),
            started_at: record.map(|record| Time::new(record.started)),
            uptime_seconds: record.map(RunRecord::age),
            network: record.map(network),
            addresses: record.map_or_else(Vec::new, |record| record.network.own_addresses()),
            lan: record.map_or_else(Vec::new, |record| interfaces(&record.network, &guest.lan)),
            ports: record.map_or_else(Vec::new, |record| ports(&record.network.publish)),
            id_range: record
                .map(|record| IdRange { first: record.ids.base, count: record.ids.count }),
            limits: guest.into(),
            traffic: guest.traffic.as_ref().map(Traffic::from),
            access: guest.access.iter().map(AccessRule::from).collect(),
            health: guest.into(),
            last_run: last.map(LastRun::from),
            pending_restart: last.and_then(|last| last.pending.as_ref()).map(pending),
        }
    }
}

impl From<Status> for State {
    fn from(status: Status) -> Self {
        match status {
            Status::Stopped => Self::Stopped,
            Status::Running => Self::Running,
            Status::Ready => Self::Ready,
            Status::Frozen => Self::Frozen,
            Status::Stopping => Self::Stopping,
            Status::Restarting => Self::Restarting,
            Status::Unknown => Self::Unknown,
        }
    }
}

/// What `uname -m` prints on this host.
static NATIVE: OnceLock<String> = OnceLock::new();

/// The machine that programs see, as `uname -m` names it.
pub fn arch(arch: Arch) -> &'static str {
    match arch {
        Arch::Native => {
            NATIVE.get_or_init(|| rustix::system::uname().machine().to_string_lossy().into_owned())
        }
        Arch::I686 => "i686",
    }
}

/// A network mode, as it is written in guest.toml.
pub fn mode(mode: NetMode) -> &'static str {
    match mode {
        NetMode::Private => "private",
        NetMode::Host => "host",
        NetMode::Native => "native",
        NetMode::None => "none",
    }
}

fn network(record: &RunRecord) -> Network {
    let network = &record.network;
    let private = network.mode == NetMode::Private;
    let rates = network.shaping.as_ref().map(|shaping| Rates {
        uplink: shaping.uplink_name.clone(),
        uplink_bits: shaping.uplink_rate,
        reserve_bits: shaping.reserve,
        share: shaping.share,
        cap_bits: shaping.cap,
    });
    let host_interface = private.then(|| network.host_if.clone());
    Network { mode: mode(network.mode), host_interface, rates }
}

fn ports(published: &[Publish]) -> Vec<PublishedPort> {
    let port = |port: &Publish| PublishedPort {
        host_address: port.host_ip,
        host_port: port.host_port,
        guest_port: port.guest_port,
        protocol: match port.proto {
            Proto::Tcp => "tcp",
            Proto::Udp => "udp",
        },
    };
    published.iter().map(port).collect()
}
