//! Other programs' chains that drop guests' packets.
//!
//! An accept in one nftables table does not overrule a drop in another, and Holm does not change
//! other programs' rules. So a chain that drops what it does not know (Docker, ufw, firewalld) can
//! only be reported.

use std::process::Command;

use crate::process::call_for_output;

/// Another program's chain that drops packets unless one of its rules accepts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The table's family and name, `ip filter`.
    pub table: String,
    /// The chain.
    pub chain: String,
    hook: Hook,
    firewall: Firewall,
}

/// Where a chain gets guests' packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Those between a guest and others.
    Forward,
    /// Queries to the host's own resolver.
    Input,
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
        let Self { table, chain, hook, firewall } = self;
        let tool = if table == "ip filter" { "iptables" } else { "ip6tables" };
        let accept_in =
            |chain| format!("{tool} -I {chain} -i h+ -j ACCEPT; {tool} -I {chain} -o h+ -j ACCEPT");
        match (firewall, hook) {
            (Firewall::Firewalld, _) => "firewall-cmd --permanent --zone=trusted \
                                         --add-interface=h+; firewall-cmd --reload"
                .to_owned(),
            (Firewall::Ufw, Hook::Forward) => {
                "ufw route allow in on h+; ufw route allow out on h+".to_owned()
            }
            (Firewall::Ufw, Hook::Input) => "ufw allow in on h+ to any port 53".to_owned(),
            (Firewall::Docker, Hook::Forward) => accept_in(DOCKER),
            (Firewall::Iptables, Hook::Forward) => accept_in(chain),
            (Firewall::Docker | Firewall::Iptables, Hook::Input) => format!(
                "{tool} -I {chain} -i h+ -p udp --dport 53 -j ACCEPT; \
                 {tool} -I {chain} -i h+ -p tcp --dport 53 -j ACCEPT"
            ),
            (Firewall::Nft, Hook::Forward) => format!(
                "nft insert rule {table} {chain} iifname \"h*\" accept; \
                 nft insert rule {table} {chain} oifname \"h*\" accept"
            ),
            (Firewall::Nft, Hook::Input) => format!(
                "nft insert rule {table} {chain} iifname \"h*\" meta l4proto {{ tcp, udp }} \
                 th dport 53 accept"
            ),
        }
    }
}

/// Other programs' chains at a hook that drop packets which no rule accepts, in tables that have no
/// rule for guests' interfaces (`h*`) there. Does not see rules of iptables-legacy. Runs `nft`,
/// which would be too slow for a start; what is not installed, `attach` reports.
pub fn blockers(hook: Hook) -> Vec<Blocker> {
    let nft = call_for_output(Command::new("nft").args(["--terse", "list", "ruleset"]));
    dropping_chains(&nft.map(|nft| nft.printed).unwrap_or_default(), hook)
}

/// A table as far as it was read.
#[derive(Default)]
struct Table {
    name: String,
    /// Its chains that drop packets at the hook.
    dropping: Vec<String>,
    has_ufw: bool,
    has_docker: bool,
    knows_guests: bool,
}

/// A chain as far as it was read.
struct Chain {
    name: String,
    /// Its rules are for what comes to the host: ufw and firewalld name such chains so.
    is_input: bool,
    /// Whether its policy is drop; `None` if it is not at the hook.
    drops: Option<bool>,
    /// Its last rule drops or rejects every packet, as firewalld's does.
    ends_in_drop: bool,
}

/// The chains at a hook that drop packets of guests, from `nft --terse list ruleset`.
pub fn dropping_chains(text: &str, hook: Hook) -> Vec<Blocker> {
    let hooked = match hook {
        Hook::Forward => " hook forward ",
        Hook::Input => " hook input ",
    };
    let (mut table, mut chain) = (Table::default(), None::<Chain>);
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_input = chain.as_ref().is_some_and(|chain| chain.is_input);
        table.knows_guests |= line.contains("\"h*\"") && is_input == (hook == Hook::Input);
        if let Some(name) = line.strip_prefix("table ") {
            found.append(&mut table.blockers(hook));
            name.trim_end_matches('{').trim().clone_into(&mut table.name);
        } else if let Some(name) = line.strip_prefix("chain ") {
            let name = name.trim_end_matches('{').trim().to_owned();
            table.has_ufw |= name.starts_with("ufw-") || name.starts_with("ufw6-");
            table.has_docker |= name == DOCKER;
            chain = Some(Chain {
                is_input: name.to_ascii_lowercase().contains("input"),
                name,
                drops: None,
                ends_in_drop: false,
            });
        } else if line == "}" {
            let ended = chain.take();
            let ended =
                ended.filter(|chain| chain.drops.is_some_and(|it| it || chain.ends_in_drop));
            table.dropping.extend(ended.map(|chain| chain.name));
        } else if let Some(chain) = &mut chain {
            if line.contains(" hook ") {
                chain.is_input |= line.contains(" hook input ");
                chain.drops = line.contains(hooked).then(|| line.contains("policy drop"));
            } else if !line.is_empty() {
                chain.ends_in_drop = drops_everything(line);
            }
        }
    }
    found.append(&mut table.blockers(hook));
    found
}

impl Table {
    /// Its chains that drop packets of guests; it is empty after that.
    fn blockers(&mut self, hook: Hook) -> Vec<Blocker> {
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
        let blocker = |chain| Blocker { table: name.clone(), chain, hook, firewall };
        dropping.into_iter().map(blocker).collect()
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

    fn found_at(text: &str, hook: Hook) -> Vec<(String, String, String)> {
        let found = dropping_chains(text, hook).into_iter();
        found.map(|it| (it.table.clone(), it.chain.clone(), it.remedy())).collect()
    }

    fn found(text: &str) -> Vec<(String, String, String)> {
        found_at(text, Hook::Forward)
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
        assert_eq!(dropping_chains(&trusted, Hook::Forward), []);
        let open = FIREWALLD.replace("\t\treject with icmpx admin-prohibited\n", "");
        assert_eq!(dropping_chains(&open, Hook::Forward), []);
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
        assert_eq!(dropping_chains(&ipv6, Hook::Forward)[0].remedy(), found[0].2);
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

    const INPUT: &str = "\
table ip filter {
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t\tcounter packets 0 bytes 0 jump own-input
\t}
\tchain own-input {
\t}
\tchain own-forward {
\t\tiifname \"h*\" counter packets 0 bytes 0 accept
\t}
}
";

    #[test]
    fn a_dropping_input_chain_is_found() {
        let remedy = |text: &str| found_at(text, Hook::Input).into_iter().map(|it| it.2).next();
        let commands = "iptables -I INPUT -i h+ -p udp --dport 53 -j ACCEPT; \
                        iptables -I INPUT -i h+ -p tcp --dport 53 -j ACCEPT";
        assert_eq!(remedy(INPUT).as_deref(), Some(commands));
        let ufw = INPUT.replace("own-", "ufw-user-");
        assert_eq!(remedy(&ufw).as_deref(), Some("ufw allow in on h+ to any port 53"));
        let told = "chain ufw-user-input {\n\t\tiifname \"h*\" udp dport 53 accept";
        assert_eq!(remedy(&ufw.replace("chain ufw-user-input {", told)), None);
        let own = INPUT.replace("ip filter", "inet own");
        assert!(remedy(&own).unwrap().ends_with("meta l4proto { tcp, udp } th dport 53 accept"));
        assert_eq!(dropping_chains(INPUT, Hook::Forward), []);
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
