//! The rules, as text for nft.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;

use crate::config::{AccessRule, Direction, NetMode, Prefix, Proto, Protocol};
use crate::net::{GUEST_LEVEL, UNTRACKED};
use crate::record::Network;

/// The name of an instance's table, of family `inet`.
pub fn table(instance: u8) -> String {
    format!("holm-{instance}-access")
}

/// The name of a guest's chain.
pub fn chain(context: u32, direction: Direction) -> String {
    format!("c{context}_{}", name(direction))
}

/// What the names of a guest's counters begin with.
pub fn counter_prefix(context: u32) -> String {
    format!("c{context}.")
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

/// The table of an instance, with nothing of a guest.
///
/// Neighbour discovery, which conntrack does not track, is not the guest's: the host's kernel does
/// it, or answers it.
pub fn hooks(instance: u8) -> String {
    let table = table(instance);
    format!(
        r"table inet {table} {{
  map out_if {{ type iface_index : verdict; }}
  map in_if {{ type iface_index : verdict; }}
  map out_4 {{ type ipv4_addr : verdict; }}
  map in_4 {{ type ipv4_addr : verdict; }}
  map out_6 {{ type ipv6_addr : verdict; }}
  map in_6 {{ type ipv6_addr : verdict; }}
  chain input {{
    type filter hook input priority filter - 10; policy accept;
    meta l4proto icmpv6 ct state untracked accept
    iif vmap @out_if
    ip daddr vmap @in_4
    ip6 daddr vmap @in_6
  }}
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    iif vmap @out_if
  }}
  chain output {{
    type filter hook output priority filter - 10; policy accept;
    meta l4proto icmpv6 ct state untracked accept
    ip saddr vmap @out_4
    ip6 saddr vmap @out_6
  }}
  # Not in output, where what the host sends to a published port of its own still goes to lo.
  chain postrouting {{
    type filter hook postrouting priority filter - 10; policy accept;
    meta l4proto icmpv6 ct state untracked accept
    oif vmap @in_if
  }}
  chain refuse {{
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }}
}}
"
    )
}

/// The directions for which a guest has rules. Exceptions alone change nothing.
pub fn directions(network: &Network) -> impl Iterator<Item = Direction> {
    [Direction::Out, Direction::In]
        .into_iter()
        .filter(|direction| network.access.deny.iter().any(|rule| rule.direction == *direction))
}

/// The hooks for guests that share an address: whose packets are, their sockets tell. They are
/// added with the first of them, as they want a part of the kernel (`nft_socket`) that hosts
/// without such guests need not have.
fn sharing_hooks(table: &str, address: IpAddr) -> String {
    let mut script = format!(
        r"table inet {table} {{
  set sharing {{ type ipv4_addr; }}
  map out_cgroup {{ type cgroupsv2 : verdict; }}
  map in_cgroup {{ type cgroupsv2 : verdict; }}
  chain sharing-out {{ type filter hook output priority filter - 10; policy accept; }}
  chain sharing-in {{ type filter hook input priority filter - 10; policy accept; }}
}}
add element inet {table} sharing {{ {address} }}
"
    );
    for (direction, side) in [(Direction::Out, "saddr"), (Direction::In, "daddr")] {
        let name = name(direction);
        let _ = write!(
            script,
            "flush chain inet {table} sharing-{name}\n\
             add rule inet {table} sharing-{name} ip {side} @sharing \
             socket cgroupv2 level {GUEST_LEVEL} vmap @{name}_cgroup\n"
        );
    }
    script
}

/// A guest's counters, chains and elements of the maps. `cgroup` is the directory of its cgroup.
pub fn guest(network: &Network, cgroup: &Path) -> String {
    let (table, mut script) = (table(network.instance), String::new());
    if let Some(address) = network.shared_address() {
        script.push_str(&sharing_hooks(&table, address));
    }
    for name in counters(network) {
        let _ = writeln!(script, "add counter inet {table} {name}");
    }
    for direction in directions(network) {
        let chain = chain(network.context, direction);
        let _ = writeln!(script, "add chain inet {table} {chain}");
        for rule in rules(network, direction) {
            let _ = writeln!(script, "add rule inet {table} {chain} {rule}");
        }
        for (map, key) in elements(network, direction, cgroup) {
            let _ = writeln!(script, "add element inet {table} {map} {{ {key} : jump {chain} }}");
        }
    }
    script
}

/// The names of a guest's counters.
pub fn counters(network: &Network) -> Vec<String> {
    all(network).map(|(denies, rule)| counter(network.context, denies, &rule)).collect()
}

/// All rules of a guest, and whether each denies; exceptions first.
pub fn all(network: &Network) -> impl Iterator<Item = (bool, AccessRule)> {
    let allow = network.access.allow.iter().map(|rule| (false, *rule));
    allow.chain(network.access.deny.iter().map(|rule| (true, *rule)))
}

/// The name of a rule's counter: what the rule says, in the characters that names can have.
pub fn counter(context: u32, denies: bool, rule: &AccessRule) -> String {
    let verdict = if denies { "deny" } else { "allow" };
    let rule = rule.to_string().replace('@', "_at_").replace(':', "_");
    format!("{}{verdict}_{rule}", counter_prefix(context))
}

/// Who connects to a guest and is refused learns nothing; the guest itself is told.
fn rules(network: &Network, direction: Direction) -> Vec<String> {
    let mut rules = vec!["ct direction reply return".into(), "ct state related return".into()];
    if network.mode == NetMode::Native && direction == Direction::Out {
        rules.push(format!("meta priority {UNTRACKED} ct state untracked return"));
    }
    for (denies, rule) in all(network).filter(|(_, rule)| rule.direction == direction) {
        let verdict = match (denies, direction) {
            (false, _) => "return",
            (true, Direction::Out) => "goto refuse",
            (true, Direction::In) => "drop",
        };
        let counter = counter(network.context, denies, &rule);
        rules.push(format!("{}counter name {counter:?} {verdict}", matches(&rule)));
    }
    rules
}

/// What a rule matches, as nft says it; it ends with a space if it is not empty.
fn matches(rule: &AccessRule) -> String {
    let peer = rule.peer.map_or(String::new(), |Prefix { address, length }| {
        let family = if address.is_ipv4() { "ip" } else { "ip6" };
        let side = match rule.direction {
            Direction::In => "saddr",
            Direction::Out => "daddr",
        };
        format!("{family} {side} {address}/{length} ")
    });
    let protocol = match rule.protocol {
        None => String::new(),
        Some(Protocol::Icmp) => "meta l4proto { icmp, icmpv6 } ".to_owned(),
        Some(Protocol::Ports(proto, ports)) => {
            let proto = match proto {
                Proto::Tcp => "tcp",
                Proto::Udp => "udp",
            };
            let ports = ports
                .map_or(String::new(), |(first, last)| format!("{proto} dport {first}-{last} "));
            format!("meta l4proto {proto} {ports}")
        }
    };
    format!("{peer}{protocol}")
}

/// The maps in which a guest's packets are found, with their keys.
fn elements(network: &Network, direction: Direction, cgroup: &Path) -> Vec<(String, String)> {
    let direction = name(direction);
    if network.mode == NetMode::Private {
        return vec![(format!("{direction}_if"), network.host_index().to_string())];
    }
    let family = |address: &IpAddr| if address.is_ipv4() { 4 } else { 6 };
    let shared = network.shared_address();
    let element = |address: &IpAddr| match shared {
        // nft wants it below /sys/fs/cgroup, where systems with v1 have another filesystem.
        Some(shared) if shared == *address => {
            (format!("{direction}_cgroup"), format!("\"../../..{}\"", cgroup.display()))
        }
        _ => (format!("{direction}_{}", family(address)), address.to_string()),
    };
    network.native.iter().map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Net, access_rule};
    use crate::net::plan::plan_addresses;

    fn network(mode: NetMode, deny: &[&str], allow: &[&str]) -> Network {
        let rules = |all: &[&str]| all.iter().map(|text| access_rule(text).unwrap()).collect();
        let address = match mode {
            NetMode::Native => vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            _ => Vec::new(),
        };
        let net = Net { mode, address, deny: rules(deny), allow: rules(allow), ..Net::default() };
        plan_addresses(1, 5, &net).unwrap()
    }

    #[test]
    fn exceptions_come_first() {
        let network = network(
            NetMode::Private,
            &["out:tcp:25-26", "in"],
            &["out:tcp@192.0.2.0/24", "in:icmp@2001:db8::/32"],
        );
        let script = guest(&network, Path::new("/none"));
        let expected = "\
add counter inet holm-1-access c5.allow_out_tcp_at_192.0.2.0/24
add counter inet holm-1-access c5.allow_in_icmp_at_2001_db8__/32
add counter inet holm-1-access c5.deny_out_tcp_25-26
add counter inet holm-1-access c5.deny_in
add chain inet holm-1-access c5_out
add rule inet holm-1-access c5_out ct direction reply return
add rule inet holm-1-access c5_out ct state related return
add rule inet holm-1-access c5_out ip daddr 192.0.2.0/24 meta l4proto tcp counter name \"c5.allow_out_tcp_at_192.0.2.0/24\" return
add rule inet holm-1-access c5_out meta l4proto tcp tcp dport 25-26 counter name \"c5.deny_out_tcp_25-26\" goto refuse
add element inet holm-1-access out_if { 10100005 : jump c5_out }
add chain inet holm-1-access c5_in
add rule inet holm-1-access c5_in ct direction reply return
add rule inet holm-1-access c5_in ct state related return
add rule inet holm-1-access c5_in ip6 saddr 2001:db8::/32 meta l4proto { icmp, icmpv6 } counter name \"c5.allow_in_icmp_at_2001_db8__/32\" return
add rule inet holm-1-access c5_in counter name \"c5.deny_in\" drop
add element inet holm-1-access in_if { 10100005 : jump c5_in }
";
        assert_eq!(script, expected);
    }

    #[test]
    fn native_guests_are_found_by_their_addresses() {
        let network = network(NetMode::Native, &["out:tcp:25"], &["in"]);
        let script = guest(&network, Path::new("/none"));
        for element in ["out_4 { 192.0.2.1 : jump c5_out }", "out_6 { 2001:db8::1 : jump c5_out }"]
        {
            assert!(script.contains(element), "{script}");
        }
        assert!(!script.contains("c5_in"), "exceptions alone: {script}");
        let sharing = Network { shares_address: true, ..network };
        let script = guest(&sharing, Path::new("/sys/fs/cgroup/holm/web"));
        for element in [
            "out_cgroup { \"../../../sys/fs/cgroup/holm/web\" : jump c5_out }",
            "out_6 { 2001:db8::1 : jump c5_out }",
            "sharing { 192.0.2.1 }",
        ] {
            assert!(script.contains(element), "{script}");
        }
        assert!(!script.contains("out_4 {"), "{script}");
    }
}
