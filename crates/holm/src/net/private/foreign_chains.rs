//! Other programs' chains that drop guests' packets.
//!
//! An accept in one nftables table does not overrule a drop in another, and Holm does not change
//! other programs' rules. So a forward chain that drops what it does not know (Docker, ufw,
//! firewalld) can only be reported.

use std::process::Command;

use crate::process::call_for_output;

/// Another program's chain that drops forwarded packets unless one of its rules accepts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The table's family and name, `ip filter`.
    pub table: String,
    /// The chain.
    pub chain: String,
    firewall: Firewall,
}

/// Whose rules they are, which says how they are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Firewall {
    Firewalld,
    Ufw,
    Docker,
    Iptables,
    Nft,
}

/// The chain that Docker keeps for rules of other programs, and evaluates first.
const DOCKER: &str = "DOCKER-USER";

impl Blocker {
    /// The command that lets guests' packets through.
    pub fn remedy(&self) -> String {
        let Self { table, chain, firewall } = self;
        let accept_in = |chain| {
            let tool = if table == "ip filter" { "iptables" } else { "ip6tables" };
            format!("{tool} -I {chain} -i h+ -j ACCEPT; {tool} -I {chain} -o h+ -j ACCEPT")
        };
        match firewall {
            Firewall::Firewalld => "firewall-cmd --permanent --zone=trusted --add-interface=h+; \
                                    firewall-cmd --reload"
                .to_owned(),
            Firewall::Ufw => "ufw route allow in on h+; ufw route allow out on h+".to_owned(),
            Firewall::Docker => accept_in(DOCKER),
            Firewall::Iptables => accept_in(chain),
            Firewall::Nft => format!(
                "nft insert rule {table} {chain} iifname \"h*\" accept; \
                 nft insert rule {table} {chain} oifname \"h*\" accept"
            ),
        }
    }
}

/// Other programs' chains that drop forwarded packets which no rule accepts, in tables that have no
/// rule for guests' interfaces (`h*`). Does not see rules of iptables-legacy. Runs `nft`, which
/// would be too slow for a start; what is not installed, `attach` reports.
pub fn blockers() -> Vec<Blocker> {
    let nft = call_for_output(Command::new("nft").args(["--terse", "list", "ruleset"]));
    dropping_chains(&nft.map(|nft| nft.printed).unwrap_or_default())
}

/// A table as far as it was read.
#[derive(Default)]
struct Table {
    name: String,
    /// Its chains that drop forwarded packets.
    dropping: Vec<String>,
    has_ufw: bool,
    has_docker: bool,
    knows_guests: bool,
}

/// A chain as far as it was read.
struct Chain {
    name: String,
    is_forward: bool,
    /// Its policy is drop.
    drops: bool,
    /// Its last rule drops or rejects every packet, as firewalld's does.
    ends_in_drop: bool,
}

/// The chains that drop forwarded packets of guests, from `nft --terse list ruleset`.
pub fn dropping_chains(text: &str) -> Vec<Blocker> {
    let (mut table, mut chain) = (Table::default(), None::<Chain>);
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        table.knows_guests |= line.contains("\"h*\"");
        if let Some(name) = line.strip_prefix("table ") {
            found.append(&mut table.blockers());
            name.trim_end_matches('{').trim().clone_into(&mut table.name);
        } else if let Some(name) = line.strip_prefix("chain ") {
            let name = name.trim_end_matches('{').trim().to_owned();
            table.has_ufw |= name.starts_with("ufw-") || name.starts_with("ufw6-");
            table.has_docker |= name == DOCKER;
            let begun = Chain { name, is_forward: false, drops: false, ends_in_drop: false };
            chain = Some(begun);
        } else if line == "}" {
            let ended = chain.take().filter(|chain| chain.is_forward);
            let ended = ended.filter(|chain| chain.drops || chain.ends_in_drop);
            table.dropping.extend(ended.map(|chain| chain.name));
        } else if let Some(chain) = &mut chain {
            if line.contains("hook forward") {
                chain.is_forward = true;
                chain.drops = line.contains("policy drop");
            } else if !line.is_empty() {
                chain.ends_in_drop = drops_everything(line);
            }
        }
    }
    found.append(&mut table.blockers());
    found
}

impl Table {
    /// Its chains that drop packets of guests; it is empty after that.
    fn blockers(&mut self) -> Vec<Blocker> {
        let Self { name, dropping, has_ufw, has_docker, knows_guests } = std::mem::take(self);
        if knows_guests || name.starts_with("inet holm-") {
            return Vec::new();
        }
        let firewall = match name.as_str() {
            "inet firewalld" => Firewall::Firewalld,
            "ip filter" | "ip6 filter" if has_ufw => Firewall::Ufw,
            "ip filter" | "ip6 filter" if has_docker => Firewall::Docker,
            "ip filter" | "ip6 filter" => Firewall::Iptables,
            _ => Firewall::Nft,
        };
        dropping.into_iter().map(|chain| Blocker { table: name.clone(), chain, firewall }).collect()
    }
}

/// Whether a rule has no condition, and drops or rejects.
fn drops_everything(rule: &str) -> bool {
    let mut words = rule.split(' ').peekable();
    if words.peek() == Some(&"counter") {
        // `counter packets N bytes N`
        words.by_ref().take(5).for_each(drop);
    }
    matches!(words.next(), Some("drop" | "reject"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String, String)> {
        let found = dropping_chains(text).into_iter();
        found.map(|it| (it.table.clone(), it.chain.clone(), it.remedy())).collect()
    }

    #[test]
    fn a_dropping_forward_chain_is_found() {
        let text = "\
table ip filter {
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t}
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t}
}
table inet holm-1 {
\tchain between {
\t\ttype filter hook forward priority filter; policy accept;
\t\tdrop
\t}
}
table inet own {
\tset known {
\t\ttype ipv4_addr
\t}
\tchain f {
\t\ttype filter hook forward priority filter; policy drop;
\t}
}
";
        let found = found(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].0.as_str(), found[0].1.as_str()), ("ip filter", "FORWARD"));
        assert!(found[0].2.contains("iptables -I FORWARD -i h+ -j ACCEPT"), "{found:?}");
        assert!(found[1].2.starts_with("nft insert rule inet own f iifname"), "{found:?}");
    }

    const FIREWALLD: &str = "\
table inet firewalld {
\tchain filter_FORWARD {
\t\ttype filter hook forward priority filter + 10; policy accept;
\t\tct state { established, related } accept
\t\tct status dnat accept
\t\tiifname \"lo\" accept
\t\tct state invalid drop
\t\tjump filter_FORWARD_POLICIES
\t\treject with icmpx admin-prohibited
\t}
\tchain filter_FORWARD_POLICIES {
\t\tjump filter_FWD_public
\t}
}
";

    #[test]
    fn firewalld_rejects_by_its_last_rule() {
        let found = found(FIREWALLD);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].0.as_str(), found[0].1.as_str()),
            ("inet firewalld", "filter_FORWARD")
        );
        assert!(found[0].2.contains("--zone=trusted --add-interface=h+"), "{found:?}");
        let trusted = FIREWALLD.replace("jump filter_FWD_public", "iifname \"h*\" accept");
        assert_eq!(dropping_chains(&trusted), []);
        let open = FIREWALLD.replace("\t\treject with icmpx admin-prohibited\n", "");
        assert_eq!(dropping_chains(&open), []);
    }

    #[test]
    fn ufw_has_a_command_of_its_own() {
        let text = "\
table ip filter {
\tchain ufw-before-forward {
\t}
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t\tcounter packets 0 bytes 0 jump ufw-before-forward
\t}
}
";
        let found = found(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].2, "ufw route allow in on h+; ufw route allow out on h+");
        let ipv6 = text.replace("ip filter", "ip6 filter").replace("ufw-", "ufw6-");
        assert_eq!(dropping_chains(&ipv6)[0].remedy(), found[0].2);
    }

    #[test]
    fn docker_has_a_chain_for_others() {
        let text = "\
table ip filter {
\tchain DOCKER-USER {
\t\tcounter packets 0 bytes 0 return
\t}
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t\tcounter packets 0 bytes 0 jump DOCKER-USER
\t}
}
";
        let commands =
            "iptables -I DOCKER-USER -i h+ -j ACCEPT; iptables -I DOCKER-USER -o h+ -j ACCEPT";
        assert_eq!(found(text)[0].2, commands);
    }

    #[test]
    fn only_rules_without_conditions_drop_everything() {
        for rule in ["drop", "reject with icmpx admin-prohibited", "counter packets 1 bytes 2 drop"]
        {
            assert!(drops_everything(rule), "{rule}");
        }
        for rule in
            ["ct state invalid drop", "counter packets 1 bytes 2 accept", "jump x", "counter"]
        {
            assert!(!drops_everything(rule), "{rule}");
        }
    }
}
