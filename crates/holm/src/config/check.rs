//! Checks that concern several keys: conflicts, and what must be set.

use std::collections::HashSet;

use holm_bpf::ADDRESSES_MAX;

use super::entry::Entry;
use super::types::{Arch, BindMount, Config, Init, Net, NetMode};
use super::units::show_rate;
use super::values::same_network;

/// A conflict, reported at a key and at an item of its list.
pub(super) struct Conflict {
    pub key: String,
    pub item: Option<usize>,
    pub message: String,
}

fn conflict(key: impl Into<String>, message: impl Into<String>) -> Conflict {
    Conflict { key: key.into(), item: None, message: message.into() }
}

/// The same at an item of its list.
fn conflict_at(key: impl Into<String>, item: usize, message: impl Into<String>) -> Conflict {
    Conflict { item: Some(item), ..conflict(key, message) }
}

/// Checks a config as a whole, and sets what depends on several keys.
pub(super) fn check(config: &mut Config, entries: &[Entry]) -> Result<(), Conflict> {
    let is_set = |key: &str| entries.iter().any(|entry| entry.key == key);
    if config.base.is_empty() {
        return Err(conflict("base", "base is missing; write base = \"NAME\" (`holm base ls`)"));
    }
    check_init(config, is_set("init"))?;
    if config.arch == Arch::I686 && !cfg!(target_arch = "x86_64") {
        return Err(conflict("arch", "arch: i686 programs run on x86_64 hosts only"));
    }
    if config.memory.swap.is_some() && config.memory.limit.is_none() {
        let message = "memory.swap is swap beyond memory.limit, which is not set";
        return Err(conflict("memory.swap", message));
    }
    if config.memory.lock.is_some() && config.rlimits.contains_key("memlock") {
        return Err(conflict(
            "rlimits.memlock",
            "rlimits.memlock and memory.lock are the same limit",
        ));
    }
    check_net(config)?;
    no_duplicates(
        "net.publish",
        config.net.publish.iter().map(|p| (p.host_ip, p.host_port, p.proto)),
    )
    .map_err(|conflict| {
        // A range is several ports; then the index of a port is not that of its item.
        let written = entries.iter().find(|e| e.key == "net.publish").map_or(0, |e| e.items.len());
        let item = conflict.item.filter(|_| written == config.net.publish.len());
        Conflict { item, ..conflict }
    })?;
    no_duplicates("mounts", config.mounts.iter().map(|m| &m.target))?;
    no_duplicates("volumes", config.volumes.iter().map(|v| &v.target))?;
    check_volumes(config)?;
    no_duplicates("devices", config.devices.iter())
}

fn check_init(config: &mut Config, is_set: bool) -> Result<(), Conflict> {
    if let Some(s) = config.services.iter().find(|s| s.command.is_empty()) {
        let key = format!("services.{}.restart", s.name);
        return Err(conflict(key, format!("services.{}.command is missing", s.name)));
    }
    let runs = match (config.command.is_empty(), config.services.first()) {
        (true, None) => return Ok(()),
        (false, None) => "command".to_owned(),
        (true, Some(service)) => format!("services.{}.command", service.name),
        (false, Some(_)) => {
            let message = "command and services exclude each other; make the command a service";
            return Err(conflict("command", message));
        }
    };
    if !is_set {
        config.init = Init::Minimal;
    }
    if config.init == Init::System {
        let message =
            format!("{runs} needs init = \"minimal\"; the base's own init starts its own services");
        return Err(conflict(runs, message));
    }
    Ok(())
}

fn check_net(config: &Config) -> Result<(), Conflict> {
    let net = &config.net;
    if let (Some(reserve), Some(cap)) = (net.reserve, net.cap)
        && cap < reserve
    {
        let message = format!("net.cap is less than net.reserve, {}", show_rate(reserve));
        return Err(conflict("net.cap", message));
    }
    check_access(net)?;
    check_lan(net)?;
    check_names(config)?;
    if net.mode != NetMode::Native {
        let given = [
            ("net.interface", net.interface.is_some()),
            ("net.share-address", net.share_address),
            ("net.hide-sockets", net.hide_sockets),
        ];
        if let Some((key, _)) = given.iter().find(|(_, given)| *given) {
            let message = format!("{key} is for native guests: set net.mode = \"native\"");
            return Err(conflict(*key, message));
        }
    }
    if !net.peers && matches!(net.mode, NetMode::Native | NetMode::Host) {
        let message = "net.peers = false is for guests that have their own network stack; one at \
                       addresses of the host's is reached there; set net.mode = \"private\"";
        return Err(conflict("net.peers", message));
    }
    let (mode, why) = match net.mode {
        NetMode::Private => return check_addresses(config),
        NetMode::Native => return check_native(config),
        NetMode::None => ("none", "the guest has no network"),
        NetMode::Host => ("host", "the guest's ports are the host's"),
    };
    let excluded = [
        ("net.publish", !net.publish.is_empty()),
        ("net.ports", net.ports.is_some()),
        ("net.address", !net.address.is_empty()),
        ("net.dns", !net.dns.is_empty() && net.mode == NetMode::None && net.lan.is_empty()),
        ("net.reserve", net.reserve.is_some()),
        ("net.share", net.share.is_some()),
        ("net.cap", net.cap.is_some()),
        ("net.deny", !net.deny.is_empty()),
        ("net.allow", !net.allow.is_empty()),
        ("net.flows", net.flows),
    ];
    match excluded.iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            Err(conflict(*key, format!("{key} conflicts with net.mode = \"{mode}\": {why}")))
        }
        None => Ok(()),
    }
}

/// The most items of `net.deny` and of `net.allow`: a packet that opens a connection passes them
/// one by one.
const ACCESS_RULES_MAX: usize = 64;

fn check_access(net: &Net) -> Result<(), Conflict> {
    for (key, rules) in [("net.deny", &net.deny), ("net.allow", &net.allow)] {
        no_duplicates(key, rules.iter())?;
        if rules.len() > ACCESS_RULES_MAX {
            let message = format!("{key}: a guest has at most {ACCESS_RULES_MAX} of them");
            return Err(conflict_at(key, ACCESS_RULES_MAX, message));
        }
    }
    if net.deny.is_empty() && !net.allow.is_empty() {
        // Who takes it for the list of all that is allowed must not believe to have that.
        let message = "net.allow has exceptions from net.deny, which is empty; to allow nothing \
                       else, also set net.deny = [\"in\", \"out\"]";
        return Err(conflict("net.allow", message));
    }
    Ok(())
}

/// What `net.names` mounts.
const HOSTS: &str = "/etc/hosts";

fn check_names(config: &Config) -> Result<(), Conflict> {
    let net = &config.net;
    if !net.names {
        return Ok(());
    }
    let has_addresses = match net.mode {
        NetMode::Private => true,
        NetMode::Native => !net.address.is_empty(),
        NetMode::None => net.lan.iter().any(|lan| !lan.addresses.is_empty()),
        NetMode::Host => false,
    };
    let refuse = |why: &str| Err(conflict("net.names", format!("net.names: {why}")));
    if !has_addresses {
        return refuse(
            "the guest has no address that Holm knows; a native one wants net.address, one \
             without a network addresses in net.lan",
        );
    }
    if !net.peers {
        return refuse("net.peers = false keeps it from the others; leave one of both out");
    }
    if config.mounts.iter().any(|mount| mount.target.starts_with(HOSTS)) {
        return refuse("mounts has an /etc/hosts, too; leave one of both out");
    }
    Ok(())
}

/// The most interfaces that a guest has in networks of the host's.
const LAN_MAX: usize = 8;

fn check_lan(net: &Net) -> Result<(), Conflict> {
    let error = |item, message: String| Err(conflict_at("net.lan", item, message));
    if !net.lan.is_empty() && matches!(net.mode, NetMode::Native | NetMode::Host) {
        let message = "net.lan is for guests that have their own network stack: set net.mode = \
                       \"private\", or \"none\" for a guest that is nowhere else";
        return Err(conflict("net.lan", message));
    }
    if net.lan.len() > LAN_MAX {
        return error(LAN_MAX, format!("net.lan: a guest has at most {LAN_MAX} of them"));
    }
    if !net.lan.is_empty() && !net.deny.is_empty() {
        let message = "net.deny conflicts with net.lan: its rules do not see what passes there";
        return Err(conflict("net.deny", message));
    }
    let mut known = HashSet::new();
    for (item, lan) in net.lan.iter().enumerate() {
        if let Some((twice, _)) = lan.addresses.iter().find(|(it, _)| !known.insert(*it)) {
            return error(item, format!("net.lan: the address {twice} is given twice"));
        }
        let fours = lan.addresses.iter().filter(|(it, _)| it.is_ipv4()).count();
        if fours.max(lan.addresses.len() - fours) > ADDRESSES_MAX {
            let message = format!(
                "net.lan: an interface has at most {ADDRESSES_MAX} addresses of each family"
            );
            return error(item, message);
        }
    }
    check_gateway(net)
}

fn check_gateway(net: &Net) -> Result<(), Conflict> {
    let error = |item, message: String| Err(conflict_at("net.gateway", item, message));
    if !net.gateway.is_empty() && net.mode != NetMode::None {
        let message = "net.gateway is for guests that have no network but net.lan: set net.mode = \
                       \"none\"";
        return Err(conflict("net.gateway", message));
    }
    for (item, gateway) in net.gateway.iter().enumerate() {
        let mut addresses = net.lan.iter().flat_map(|lan| &lan.addresses);
        if !addresses.any(|(it, length)| it != gateway && same_network(*it, *gateway, *length)) {
            return error(item, format!("net.gateway: no address in net.lan reaches {gateway}"));
        }
        if net.gateway[..item].iter().any(|it| it.is_ipv4() == gateway.is_ipv4()) {
            return error(item, "net.gateway: a guest has at most one of each family".to_owned());
        }
    }
    Ok(())
}

fn check_addresses(config: &Config) -> Result<(), Conflict> {
    for (name, v6) in [("IPv4", false), ("IPv6", true)] {
        let mut same = config.net.address.iter().enumerate().filter(|(_, a)| a.is_ipv6() == v6);
        if let Some((item, _)) = same.nth(1) {
            let message = format!("net.address: a guest has at most one {name} address");
            return Err(conflict_at("net.address", item, message));
        }
    }
    match config.net.address.iter().position(std::net::IpAddr::is_loopback) {
        None => Ok(()),
        Some(item) => {
            let message = "net.address: a loopback address reaches nobody";
            Err(conflict_at("net.address", item, message))
        }
    }
}

fn check_native(config: &Config) -> Result<(), Conflict> {
    let net = &config.net;
    let excluded = [
        ("net.publish", !net.publish.is_empty()),
        ("net.ports", net.ports.is_some()),
        ("net.flows", net.flows && !net.share_address),
    ];
    if let Some((key, _)) = excluded.iter().find(|(_, given)| *given) {
        let message = format!(
            "{key} conflicts with net.mode = \"native\": the guest has all ports of its addresses"
        );
        return Err(conflict(*key, message));
    }
    if net.share_address && net.address.iter().filter(|address| address.is_ipv4()).count() != 1 {
        let message = "net.share-address wants exactly one IPv4 address in net.address, which \
                       other guests have too; IPv6 addresses are its own";
        return Err(conflict("net.share-address", message));
    }
    for (name, v6) in [("IPv4", false), ("IPv6", true)] {
        let mut same = net.address.iter().enumerate().filter(|(_, a)| a.is_ipv6() == v6);
        if let Some((item, _)) = same.nth(ADDRESSES_MAX) {
            let message =
                format!("net.address: a native guest has at most {ADDRESSES_MAX} {name} addresses");
            return Err(conflict_at("net.address", item, message));
        }
    }
    no_duplicates("net.address", net.address.iter())
}

/// Volumes are mounted before what `mounts` names.
fn check_volumes(config: &Config) -> Result<(), Conflict> {
    for (item, volume) in config.volumes.iter().enumerate() {
        let hides = |mount: &&BindMount| volume.target.starts_with(&mount.target);
        if let Some(mount) = config.mounts.iter().find(hides) {
            let message = format!(
                "volumes: {} is, or lies below, the target of a mount, {}, which would hide it",
                volume.target.display(),
                mount.target.display()
            );
            return Err(conflict_at("volumes", item, message));
        }
    }
    Ok(())
}

/// Refuses a list that holds an item twice.
fn no_duplicates<T: std::hash::Hash + Eq>(
    key: &'static str,
    items: impl Iterator<Item = T>,
) -> Result<(), Conflict> {
    let mut known = HashSet::new();
    for (item, value) in items.enumerate() {
        if !known.insert(value) {
            let what = match key {
                "net.publish" => "the same host port is published twice",
                "mounts" => "two mounts have the same target",
                "volumes" => "two volumes have the same target",
                "net.address" => "the same address is given twice",
                "devices" => "the same device is given twice",
                _ => "the same item is given twice",
            };
            return Err(conflict_at(key, item, format!("{key}: {what}")));
        }
    }
    Ok(())
}
