//! The rules of an instance's nftables table, as text.
//!
//! The rules match interface groups, not single guests, so starting a guest without published ports
//! does not change them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;

use crate::net::addresses::{GATEWAY_V4, GROUP_ISOLATED, GROUP_PEERS, host_prefix, subnets};

/// The name of an instance's table, of family `inet`.
pub fn table(instance: u8) -> String {
    format!("holm-{instance}")
}

/// The rules of an instance. `resolver` is the host's loopback resolver, if guests' queries have to
/// be translated to it.
pub fn ruleset(instance: u8, resolver: Option<Ipv4Addr>) -> String {
    let mine = format!("\"{}*\"", host_prefix(instance));
    let (v4, v6) = subnets(instance);
    let guests = format!("{{ {GROUP_PEERS}, {GROUP_ISOLATED} }}");
    let dns = resolver.map_or(String::new(), |resolver| resolver_rule(&mine, resolver));
    format!(
        r#"
  map tcp_udp_4 {{ type inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_4_at {{ type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }}
  map tcp_udp_6 {{ type inet_proto . inet_service : ipv6_addr . inet_service; }}
  map tcp_udp_6_at {{ type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service; }}
  # Guests that reach their own published ports.
  set hairpin_4 {{ type ipv4_addr . ipv4_addr; }}
  set hairpin_6 {{ type ipv6_addr . ipv6_addr; }}
  # Before connection tracking translates replies back, to see the addresses that guests really use.
  chain from_guests {{
    type filter hook prerouting priority raw; policy accept;
    iifname {mine} goto guest_source
  }}
  chain guest_source {{
    udp dport 67 drop comment "the guest's monitor answers DHCP"
    ip daddr 127.0.0.0/8 drop
    ip6 daddr ::1 drop
    icmpv6 type {{ nd-router-advert, nd-redirect }} drop
    icmp type redirect drop
    fib saddr . iif oif missing drop comment "not the guest's own address"
  }}
  chain published {{
    type nat hook prerouting priority dstnat; policy accept;
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
    oifname {mine} ip saddr 127.0.0.0/8 masquerade
    oifname {mine} ip6 saddr ::1 masquerade
    oifname {mine} ip saddr . ip daddr @hairpin_4 masquerade
    oifname {mine} ip6 saddr . ip6 daddr @hairpin_6 masquerade
    oifgroup {guests} accept
    ip saddr {v4}/16 masquerade
    ip6 saddr {v6}/64 masquerade
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname {mine} iifgroup {GROUP_ISOLATED} oifgroup {guests} goto isolated
    oifname {mine} oifgroup {GROUP_ISOLATED} iifgroup {guests} goto isolated
    oifname {mine} iifgroup != {guests} ct state new ct status ! dnat ip daddr {v4}/16 drop
    oifname {mine} iifgroup != {guests} ct state new ct status ! dnat ip6 daddr {v6}/64 drop
  }}
  chain isolated {{
    ip saddr . ip daddr @hairpin_4 accept
    ip6 saddr . ip6 daddr @hairpin_6 accept
    drop
  }}
"#
    )
}

/// The rule that translates queries of guests, whose interfaces match `mine`, to the host's
/// loopback resolver.
fn resolver_rule(mine: &str, resolver: Ipv4Addr) -> String {
    format!(
        "iifname {mine} ip daddr {GATEWAY_V4} meta l4proto {{ tcp, udp }} th dport 53 \
         dnat ip to {resolver}"
    )
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
        let plain = ruleset(1, None);
        assert_ne!(digest(&plain), digest(&ruleset(2, None)));
        assert_ne!(digest(&plain), digest(&ruleset(1, Some(Ipv4Addr::LOCALHOST))));
        assert!(plain.contains("10.97.0.0/16") && !plain.contains("dnat ip to 127"));
    }
}
