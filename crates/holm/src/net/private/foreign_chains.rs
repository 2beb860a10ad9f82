//! Other programs' chains that drop guests' packets.
//!
//! An accept in one nftables table does not overrule a drop in another, and Holm does not change
//! other programs' rules. So a forward chain with policy drop (Docker, ufw, firewalld) can only be
//! reported.

use std::process::Command;

use crate::process::call_for_output;

/// Another program's chain that drops forwarded packets unless one of its rules accepts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The table's family and name, `ip filter`.
    pub table: String,
    /// The chain.
    pub chain: String,
}

impl Blocker {
    /// The command that lets guests' packets through.
    pub fn remedy(&self) -> String {
        let chain = if self.table == "ip filter" || self.table == "ip6 filter" {
            // Docker evaluates DOCKER-USER first, which is for other programs' rules.
            let tool = if self.table == "ip filter" { "iptables" } else { "ip6tables" };
            return format!(
                "{tool} -I {} -i h+ -j ACCEPT; {tool} -I {0} -o h+ -j ACCEPT \
                 (with Docker: into DOCKER-USER)",
                self.chain
            );
        } else {
            &self.chain
        };
        format!(
            "nft insert rule {} {chain} iifname \"h*\" accept; \
             nft insert rule {0} {chain} oifname \"h*\" accept",
            self.table
        )
    }
}

/// Other programs' chains with policy drop for forwarded packets, in tables that have no rule for
/// guests' interfaces (`h*`). Does not see rules of iptables-legacy. Runs `nft`, which would be too
/// slow for a start.
pub fn blockers() -> Vec<Blocker> {
    let mut found = dropping_chains(&nft(&["list", "chains"]));
    found.retain(|blocker| {
        let table =
            [&["list", "table"][..], &blocker.table.split(' ').collect::<Vec<_>>()].concat();
        !nft(&table).contains("\"h*\"")
    });
    found
}

/// The output of nft; empty if it is not installed, which `attach` reports.
fn nft(args: &[&str]) -> String {
    call_for_output(Command::new("nft").args(args)).map(|nft| nft.printed).unwrap_or_default()
}

/// The chains with policy drop for forwarded packets, from `nft list chains`.
pub fn dropping_chains(text: &str) -> Vec<Blocker> {
    let (mut table, mut chain) = (String::new(), String::new());
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("table ") {
            name.trim_end_matches('{').trim().clone_into(&mut table);
        } else if let Some(name) = line.strip_prefix("chain ") {
            name.trim_end_matches('{').trim().clone_into(&mut chain);
        } else if line.contains("hook forward") && line.contains("policy drop") {
            found.push(Blocker { table: table.clone(), chain: chain.clone() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
\t}
}
";
        let found = dropping_chains(text);
        assert_eq!(found, [Blocker { table: "ip filter".into(), chain: "FORWARD".into() }]);
        assert!(found[0].remedy().contains("iptables -I FORWARD -i h+ -j ACCEPT"));
    }
}
