//! A guest's network, by `net.mode`.
//!
//! All functions act on the network namespace of the calling thread. [`mode`] is the trait that
//! each mode implements; [`private`], [`native`], [`none`] and [`host`] are the modes, and
//! [`by_mode`] dispatches to them. The other files are shared by all modes: netlink, interfaces and
//! routes, name servers, published ports, errors.

mod access;
mod addresses;
mod by_mode;
mod classifier;
mod dns;
mod error;
mod flows;
mod host;
mod lan;
mod link;
mod lock;
mod loopback;
mod mode;
mod names;
mod native;
mod netlink;
mod nflog;
mod nft;
mod none;
mod plan;
mod ports;
mod private;
mod published;
mod request;
mod route;
mod shaping;
mod sysctl;
mod tc;
mod traffic;
mod uapi;
mod veth;

pub use access::{Counted, counted, is_set as has_access_rules, set as set_access_rules};
pub use addresses::{ADDRESS_MAX, GATEWAY_V4, GATEWAY_V6, context_of};
pub use by_mode::{
    admit, after_release, attach, bound_connections, change, check_address, check_addresses,
    clean_up, configure_inside, destroy_instance, detach, detach_unrecorded, dismiss, files, flows,
    has_host_side, has_own_namespace, has_veth, is_attached, plan, readdressed, reshaped,
    responder, restore_ruleset, tell_flows, tells_flows, traffic, with_access,
};
pub use dns::is_on_host as is_resolver_on_host;
pub use error::Error;
pub use lan::{plan as plan_lan, traffic as lan_traffic};
pub use loopback::loopback_up;
pub use mode::{Files, Responder};
pub use names::file as hosts_file;
pub use native::are_unix_names_apart;
pub use private::{Blocker, Hook, attached_contexts, blockers, has_ruleset};
pub use request::Request;
pub use shaping::{add as set_rate, is_set as has_rate};
pub use sysctl::set_ping_group_range;
pub use traffic::{LanTraffic, Reason, Traffic, Volume};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use {
    link::Link,
    netlink::{Attributes, Messages, number, text},
    ports::sockets,
    private::dropping_chains,
};

/// How many connections that a guest has opened the kernel tracks at a time: a sixteenth of the
/// table that it has by default (`nf_conntrack_max`, 262144), which all guests and the host share.
/// Counting walks the guest's connections, at most once a tick: twice as many would take twice as
/// long.
const CONNECTIONS_MAX: u32 = 16384;

/// The priority of datagrams to native guests that are not tracked, and of answers to them
/// (`UNTRACKED` in holm-bpf's `guests.h`). No guest can give it to its own.
const UNTRACKED: &str = "486f:1";

/// The id of a cgroup, as programs and rules see it.
type CgroupId = [u8; 8];
/// Guests' cgroups are this far below the root.
const GUEST_LEVEL: u32 = 2;
