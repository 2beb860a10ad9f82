//! Finds a key of `guest.toml` by name, and suggests one for a name that is not a key.

use super::key::Key;
use super::nearest::nearest;
use super::table::KEYS;

/// All keys, in the order of the documentation.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// The key with this dotted name, if there is one.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.matches(name))
}

/// Whether `name` is the prefix of other keys, such as `memory`.
pub(super) fn is_group(name: &str) -> bool {
    KEYS.iter().any(|key| {
        let mut parts = key.name.split('.');
        name.split('.').all(|part| parts.next().is_some_and(|it| it == "*" || it == part))
            && parts.next().is_some()
    })
}

/// Names that other tools use, and the key that Holm has instead.
const ALIASES: [(&str, &str); 31] = [
    ("image", "base"),
    ("memory", "memory.limit"),
    ("memory.max", "memory.limit"),
    ("memory.size", "memory.limit"),
    ("mem", "memory.limit"),
    ("memory.high", "memory.limit"),
    ("memory.swap.max", "memory.swap"),
    ("cpus", "cpu.cap"),
    ("cpu", "cpu.cap"),
    ("cpu.max", "cpu.cap"),
    ("cpu.limit", "cpu.cap"),
    ("cpu.weight", "cpu.share"),
    ("cpu.shares", "cpu.share"),
    ("cpuset", "cpu.set"),
    ("cpu.cpus", "cpu.set"),
    ("pids", "pids.limit"),
    ("disk", "disk.size"),
    ("disk.limit", "disk.size"),
    ("disk.quota", "disk.size"),
    ("ports", "net.publish"),
    ("publish", "net.publish"),
    ("net", "net.mode"),
    ("dns", "net.dns"),
    ("net.limit", "net.cap"),
    ("net.weight", "net.share"),
    ("net.bridge", "net.lan"),
    ("net.macvlan", "net.lan"),
    ("host-access", "net.host-access"),
    ("net.host", "net.host-access"),
    ("allow-host", "net.host-access"),
    ("cmd", "command"),
];

/// Keys, or groups of keys, that are planned, and what Holm cannot do without them
/// (docs/decisions/0018-planned-keys-are-refused.md).
const PLANNED: [(&str, &str); 3] = [
    ("cpu.reserve", "Holm reserves no CPU time yet; cpu.share divides it when it is short"),
    ("io", "Holm neither divides nor bounds what guests read and write yet"),
    ("include", "guest.toml cannot take in another file yet"),
];

fn planned(name: &str) -> Option<&'static str> {
    let is = |key: &str| name.strip_prefix(key).is_some_and(|n| n.is_empty() || n.starts_with('.'));
    PLANNED.iter().find(|(key, _)| is(key)).map(|(_, missing)| *missing)
}

/// The error message for a name that is not a key.
pub fn unknown(name: &str) -> String {
    if is_group(name) {
        let inside: Vec<&str> = KEYS
            .iter()
            .map(|k| k.name)
            .filter(|k| k.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
            .collect();
        let alias = ALIASES.iter().find(|(a, _)| *a == name);
        return match alias {
            Some((_, key)) => format!("{name} is a group of keys; did you mean {key}?"),
            None => format!("{name} is a group of keys; they are {}", inside.join(", ")),
        };
    }
    if let Some(missing) = planned(name) {
        return format!("unknown key {name}: {missing}");
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let hint = ALIASES
        .iter()
        .find(|(a, _)| *a == name)
        .map(|(_, key)| *key)
        .or_else(|| nearest(name, KEYS.iter().map(|k| k.name)))
        // The right last part without its group, or in the wrong one.
        .or_else(|| {
            let mut same = KEYS.iter().filter(|k| k.name.rsplit('.').next() == Some(last));
            same.next().filter(|_| same.next().is_none()).map(|k| k.name)
        });
    match (hint, name.split_once('.')) {
        (Some(key), _) => format!("unknown key {name}; did you mean {key}?"),
        (None, Some((group, _))) if is_group(group) => {
            let inside: Vec<&str> = KEYS
                .iter()
                .map(|k| k.name)
                .filter(|k| k.starts_with(&format!("{group}.")))
                .collect();
            format!("unknown key {name}; there are {}", inside.join(", "))
        }
        (None, _) => format!("unknown key {name}; `holm help set` lists all keys"),
    }
}
