//! The table as nft lists it.

use std::fmt::Write;

use serde_json::Value;

use super::script::{chain, counter_prefix};
use crate::config::Direction;
use crate::net::error::Error;

/// What of guests is in the table.
#[derive(Debug, Default)]
pub struct Listed {
    /// Maps, keys as nft reads them, and the chain that is behind.
    elements: Vec<(String, String, String)>,
    chains: Vec<String>,
    counters: Vec<String>,
}

impl Listed {
    /// Reads what `nft --json list table` has printed.
    pub fn parse(table: &str, text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Nft { table: table.to_owned(), message: why.to_owned() };
        let read: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let objects =
            read["nftables"].as_array().ok_or_else(|| wrong("its list has no objects"))?;
        let mut listed = Self::default();
        let own = |value: &Value| value["name"].as_str().map(ToOwned::to_owned);
        for object in objects {
            listed.chains.extend(own(&object["chain"]).filter(|name| name.contains('_')));
            listed.counters.extend(own(&object["counter"]));
            let (map, elements) = (&object["map"], object["map"]["elem"].as_array());
            for element in elements.into_iter().flatten() {
                let target = element[1]["jump"]["target"].as_str();
                let key = element[0].as_str().map(ToOwned::to_owned);
                let key = key.or_else(|| element[0].as_u64().map(|number| number.to_string()));
                if let (Some(map), Some(key), Some(target)) = (own(map), key, target) {
                    listed.elements.push((map, key, target.to_owned()));
                }
            }
        }
        Ok(listed)
    }

    /// Whether no guest but this one has rules.
    pub fn has_no_other(&self, context: u32) -> bool {
        let own = chains(context);
        self.chains.iter().all(|chain| own.contains(chain))
    }

    /// Empties a map if it leads to one of a guest's chains, and adds the cgroups of the others
    /// again: nft can name only those that are there, and lists the others by their number.
    fn remove_cgroup(&self, script: &mut String, table: &str, map: &str, own: &[String]) {
        let all = self.elements.iter().filter(|(of, ..)| of == map);
        if !all.clone().any(|(.., target)| own.contains(target)) {
            return;
        }
        let _ = writeln!(script, "flush map inet {table} {map}");
        let is_there = |key: &str| key.parse::<u64>().is_err();
        for (_, key, target) in
            all.filter(|(_, key, target)| is_there(key) && !own.contains(target))
        {
            let _ =
                writeln!(script, "add element inet {table} {map} {{ \"{key}\" : jump {target} }}");
        }
    }

    /// The commands that remove a guest's rules, and its counters but those that it keeps.
    pub fn removal(&self, table: &str, context: u32, kept: &[String]) -> String {
        let (own, prefix) = (chains(context), counter_prefix(context));
        let mut script = String::new();
        let own_elements = self.elements.iter().filter(|(.., target)| own.contains(target));
        for (map, key, _) in own_elements.filter(|(map, ..)| !is_of_cgroups(map)) {
            // An interface that is there is listed by its name.
            let quote = if map.ends_with("_if") { "\"" } else { "" };
            let _ = writeln!(script, "delete element inet {table} {map} {{ {quote}{key}{quote} }}");
        }
        for map in CGROUPS {
            self.remove_cgroup(&mut script, table, map, &own);
        }
        for chain in self.chains.iter().filter(|chain| own.contains(chain)) {
            let _ = writeln!(script, "flush chain inet {table} {chain}");
            let _ = writeln!(script, "delete chain inet {table} {chain}");
        }
        let old = |name: &&String| name.starts_with(&prefix) && !kept.contains(name);
        for counter in self.counters.iter().filter(old) {
            let _ = writeln!(script, "delete counter inet {table} {counter}");
        }
        script
    }
}

/// The maps in which guests that share an address are found by their cgroups.
const CGROUPS: [&str; 2] = ["out_cgroup", "in_cgroup"];

fn is_of_cgroups(map: &str) -> bool {
    CGROUPS.contains(&map)
}

fn chains(context: u32) -> [String; 2] {
    [Direction::Out, Direction::In].map(|direction| chain(context, direction))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
        {"table": {"family": "inet", "name": "holm-1-access", "handle": 1}},
        {"counter": {"name": "c5.deny_in", "packets": 0, "bytes": 0}},
        {"counter": {"name": "c5.deny_out_tcp_25", "packets": 0, "bytes": 0}},
        {"counter": {"name": "c51.deny_in", "packets": 0, "bytes": 0}},
        {"map": {"name": "out_if", "type": "iface_index", "map": "verdict",
            "elem": [["h1-5", {"jump": {"target": "c5_out"}}]]}},
        {"map": {"name": "in_4", "type": "ipv4_addr", "map": "verdict",
            "elem": [["192.0.2.1", {"jump": {"target": "c51_in"}}]]}},
        {"map": {"name": "in_6", "type": "ipv6_addr", "map": "verdict"}},
        {"map": {"name": "out_cgroup", "type": "cgroupsv2", "map": "verdict",
            "elem": [["holm/five", {"jump": {"target": "c5_out"}}],
                ["holm/six", {"jump": {"target": "c6_out"}}], [77, {"jump": {"target": "c7_out"}}]]}},
        {"chain": {"name": "input", "hook": "input", "prio": -10, "policy": "accept"}},
        {"chain": {"name": "refuse"}},
        {"chain": {"name": "c5_out"}}, {"chain": {"name": "c51_in"}}]}"#;

    #[test]
    fn only_what_is_the_guests_is_removed() {
        let listed = Listed::parse("T", LIST).unwrap();
        let script = listed.removal("T", 5, &["c5.deny_in".to_owned()]);
        let expected = "\
delete element inet T out_if { \"h1-5\" }
flush map inet T out_cgroup
add element inet T out_cgroup { \"holm/six\" : jump c6_out }
flush chain inet T c5_out
delete chain inet T c5_out
delete counter inet T c5.deny_out_tcp_25
";
        assert_eq!(script, expected);
        assert!(!listed.has_no_other(5) && !listed.has_no_other(51));
    }

    #[test]
    fn the_last_guest_is_known() {
        let list = LIST.replace(r#", {"chain": {"name": "c51_in"}}"#, "");
        assert!(Listed::parse("T", &list).unwrap().has_no_other(5));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "{}", "[1]"] {
            assert!(Listed::parse("T", text).is_err(), "{text}");
        }
    }
}
