//! The rules of an instance's nftables table, as text.
//!
//! The rules match interface groups, not single guests, so starting a guest without published ports
//! does not change them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::net::CONNECTIONS_MAX;
use crate::net::addresses::{
    GATEWAY_V4, GROUP_ISOLATED, GROUP_ISOLATED_AND_HOST, GROUP_PEERS, GROUP_PEERS_AND_HOST,
    host_prefix, subnets,
};
use crate::net::dns::Resolver;

/// The name of an instance's table, of family `inet`.
pub fn table(instance: u8) -> String {
    format!("holm-{instance}")
}

/// The rules of an instance.
pub fn ruleset(instance: u8, resolver: &Resolver) -> String {
    let mine = format!("\"{}*\"", host_prefix(instance));
    let subnets = subnets(instance);
    [
        counts(),
        from_guests(&mine),
        opened_by_guests(&mine),
        translation(&mine, subnets, resolver),
        FLOWS.to_owned(),
        between_guests(&mine, subnets),
        to_host(&mine, resolver),
    ]
    .concat()
}

/// What is counted for each guest, by its interface: the connections it has opened and accepted,
/// and packets that were dropped or refused, by reason.
pub const COUNTS: [&str; 6] = [
    "opened",
    "accepted",
    "foreign_source",
    "too_many_connections",
    "isolated_guest",
    "host_service",
];

/// The cgroups of native guests that run, and the chain with the rule that wants them, which is
/// empty until there is one.
pub const NATIVE_GUESTS: &str = "native_guests";
pub const TO_NATIVE: &str = "to_native";

/// The sets that count. The first packet of a guest adds its element, and a start removes it.
fn counts() -> String {
    let set = |name| format!("  set {name} {{ type iface_index; flags dynamic; }}\n");
    format!("\n{}", COUNTS.map(set).concat())
}

/// All groups of guests' interfaces.
fn guests() -> String {
    format!(
        "{{ {GROUP_PEERS}, {GROUP_ISOLATED}, {GROUP_PEERS_AND_HOST}, {GROUP_ISOLATED_AND_HOST} }}"
    )
}

/// What no guest may send.
fn from_guests(mine: &str) -> String {
    format!(
        r"
  # Before connection tracking translates replies back, to see the addresses that guests really use.
  chain from_guests {{
    type filter hook prerouting priority raw; policy accept;
    iifname {mine} goto guest_source
  }}
  map requests {{ type iface_index : verdict; }}
  chain guest_source {{
    meta l4proto tcp goto guest_addresses
    udp dport {{ 67, 547 }} goto request
    icmpv6 type nd-router-solicit goto request
    icmpv6 type {{ nd-router-advert, nd-redirect }} drop
    icmp type redirect drop
    goto guest_addresses
  }}
  # The guest's monitor is told, and answers.
  chain request {{
    iif vmap @requests
    udp dport 67 drop
    goto guest_addresses
  }}
  chain guest_addresses {{
    ip daddr 127.0.0.0/8 drop
    ip6 daddr ::1 drop
    fib saddr . iif oif missing goto not_its_address
  }}
  chain not_its_address {{
    add @foreign_source {{ iif counter }}
    drop
  }}
"
    )
}

/// The bound of the connections that a guest opens. A chain of type nat sees each connection once,
/// and none after the first chain that translates it, so this one comes before those of others.
fn opened_by_guests(mine: &str) -> String {
    format!(
        r"
  set openers {{ type iface_index; flags dynamic; }}
  set refused_openers {{ type iface_index; flags dynamic, timeout; timeout 100ms; }}
  # Each connection once.
  chain opened_by_guests {{
    type nat hook prerouting priority -190; policy accept;
    iifname {mine} goto count_opened
  }}
  # Each time that it counts, the kernel lists the packet's connection first, and only few that are
  # gone are taken off the list then. So a guest that is refused is not counted again for a while.
  chain count_opened {{
    iif @refused_openers goto too_many
    add @openers {{ iif ct count over {CONNECTIONS_MAX} }} goto refuse_opened
  }}
  chain refuse_opened {{
    add @refused_openers {{ iif }}
    goto too_many
  }}
  chain too_many {{
    add @too_many_connections {{ iif counter }}
    drop
  }}
"
    )
}

/// Published ports, and the addresses that guests have for others.
fn translation(mine: &str, (v4, v6): (Ipv4Addr, Ipv6Addr), resolver: &Resolver) -> String {
    let guests = guests();
    let dns = resolver.loopback.map_or(String::new(), |to| resolver_rule(mine, to));
    format!(
        r#"
  map tcp_udp_4 {{ type inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_4_at {{ type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_6 {{ type inet_proto . inet_service : ipv6_addr . inet_service; }}
  map tcp_udp_6_at {{ type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service; }}
  # Guests that reach their own published ports.
  set hairpin_4 {{ type ipv4_addr . ipv4_addr; }}
  set hairpin_6 {{ type ipv6_addr . ipv6_addr; }}
  # Each connection of a guest once.
  chain published {{
    type nat hook prerouting priority dstnat; policy accept;
    iifname {mine} add @opened {{ iif counter }}
    {dns}
    fib daddr type local meta l4proto {{ tcp, udp }} goto dnat_lookup
  }}
  chain published_local {{
    type nat hook output priority -100; policy accept;
    ip6 daddr ::1 return comment "refused at once: the kernel routes no answer to ::1"
    fib daddr type local meta l4proto {{ tcp, udp }} goto dnat_lookup
  }}
  chain dnat_lookup {{
    meta nfproto ipv4 dnat ip to ip daddr . meta l4proto . th dport map @tcp_udp_4_at
    meta nfproto ipv4 dnat ip to meta l4proto . th dport map @tcp_udp_4
    meta nfproto ipv6 dnat ip6 to ip6 daddr . meta l4proto . th dport map @tcp_udp_6_at
    meta nfproto ipv6 dnat ip6 to meta l4proto . th dport map @tcp_udp_6
  }}
  # A loopback resolver answers local senders only.
  chain to_resolver {{
    type nat hook input priority 100; policy accept;
    iifname {mine} ip daddr 127.0.0.0/8 snat ip to 127.0.0.1
  }}
  chain masquerade_guests {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname {mine} add @accepted {{ oif counter }}
    oifname {mine} ip saddr 127.0.0.0/8 masquerade
    oifname {mine} ip6 saddr ::1 masquerade
    oifname {mine} ip saddr . ip daddr @hairpin_4 masquerade
    oifname {mine} ip6 saddr . ip6 daddr @hairpin_6 masquerade
    oifgroup {guests} accept
    ip saddr {v4}/16 masquerade
    ip6 saddr {v6}/64 masquerade
  }}
"#
    )
}

/// The guests whose connections are to be recorded: `recorded` adds them, and the chain.
const FLOWS: &str = "\n  map flows { type iface_index : verdict; }\n";

/// Which guests reach each other, and are reached from outside.
fn between_guests(mine: &str, (v4, v6): (Ipv4Addr, Ipv6Addr)) -> String {
    let guests = guests();
    let isolated = format!("{{ {GROUP_ISOLATED}, {GROUP_ISOLATED_AND_HOST} }}");
    format!(
        r"
  # The HTB classes of guests' packets on the uplink.
  map classes {{ type iface_index : classid; }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname {mine} jump sent
    oifname {mine} goto received
  }}
  chain sent {{
    meta priority set iif map @classes
    iifgroup {isolated} oifgroup {guests} goto isolated
  }}
  chain received {{
    iifgroup {guests} goto received_from_guest
    ct state new ct status ! dnat goto not_asked
  }}
  chain received_from_guest {{
    oifgroup {isolated} goto isolated
  }}
  chain not_asked {{
    ip daddr {v4}/16 drop
    ip6 daddr {v6}/64 drop
  }}
  chain isolated {{
    ip saddr . ip daddr @hairpin_4 accept
    ip6 saddr . ip6 daddr @hairpin_6 accept
    iifname {mine} add @isolated_guest {{ iif counter }}
    drop
  }}
"
    )
}

/// Which services of the host guests reach.
fn to_host(mine: &str, resolver: &Resolver) -> String {
    let with_host = format!("{{ {GROUP_PEERS_AND_HOST}, {GROUP_ISOLATED_AND_HOST} }}");
    let own_dns = name_servers(resolver);
    format!(
        r"
  chain to_host {{
    type filter hook input priority filter; policy accept;
    iifname {mine} iifgroup != {with_host} goto services_of_host
  }}
  set {NATIVE_GUESTS} {{ type cgroupsv2; flags timeout; }}
  # Their addresses are the host's.
  chain {TO_NATIVE} {{
  }}
  chain services_of_host {{
    ct state established, related accept
    iifgroup {GROUP_PEERS} jump {TO_NATIVE}
    icmp type echo-request accept
    icmpv6 type {{ echo-request, nd-neighbor-solicit, nd-neighbor-advert }} accept
    {own_dns}
    add @host_service {{ iif counter }}
    meta l4proto tcp reject with tcp reset
    reject with icmpx port-unreachable
  }}
"
    )
}

/// What matches queries to a name server.
const DNS: &str = "meta l4proto { tcp, udp } th dport 53";

/// The rule that translates queries of guests, whose interfaces match `mine`, to the host's
/// loopback resolver.
fn resolver_rule(mine: &str, resolver: Ipv4Addr) -> String {
    format!("iifname {mine} ip daddr {GATEWAY_V4} {DNS} dnat ip to {resolver}")
}

/// The rules that accept queries to the name servers that guests get from the host, if those run on
/// the host itself: the loopback resolver, after translation, or servers at the host's addresses.
fn name_servers(resolver: &Resolver) -> String {
    if let Some(loopback) = resolver.loopback {
        return format!("ip daddr {loopback} ct status dnat {DNS} accept");
    }
    let rule = |server: &IpAddr| {
        let family = if server.is_ipv4() { "ip" } else { "ip6" };
        format!("{family} daddr {server} {DNS} accept")
    };
    resolver.servers.iter().map(rule).collect::<Vec<_>>().join("\n    ")
}

/// The prefix of the digests of all versions of Holm.
pub const DIGEST_PREFIX: &str = "holm ";

/// A digest of the rules, which is the table's comment. A table with another one is replaced.
pub fn digest(rules: &str) -> String {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    format!("{DIGEST_PREFIX}{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_differ_by_instance_and_resolver() {
        let of = |servers: &[&str], loopback: Option<Ipv4Addr>| {
            let servers = servers.iter().map(|text| text.parse().unwrap()).collect();
            ruleset(1, &Resolver { servers, loopback })
        };
        let plain = of(&[], None);
        assert_ne!(digest(&plain), digest(&ruleset(2, &Resolver::default())));
        assert!(plain.contains("10.97.0.0/16") && !plain.contains("dport 53"));
        let loopback = of(&["169.254.1.1"], Some(Ipv4Addr::LOCALHOST));
        assert!(loopback.contains("dnat ip to 127.0.0.1"));
        assert!(loopback.contains("ip daddr 127.0.0.1 ct status dnat"));
        let servers = of(&["192.0.2.53", "2001:db8::53"], None);
        for rule in ["ip daddr 192.0.2.53 meta l4proto", "ip6 daddr 2001:db8::53 meta l4proto"] {
            assert!(servers.contains(rule), "{servers}");
        }
    }
}
