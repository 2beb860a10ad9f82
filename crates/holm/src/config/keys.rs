//! What a key of `guest.toml` is, and how one is found.

use super::nearest::nearest;
use super::table::KEYS;
use super::types::Config;

/// A key of `guest.toml`.
#[derive(Debug)]
pub struct Key {
    /// Dotted name; `*` stands for a name of the user's (`env.*`).
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What holds when the key is absent, for people.
    pub default: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    /// One line of help.
    pub help: &'static str,
    pub(super) set: fn(&mut Config, &Input) -> Result<(), Fault>,
    pub(super) show: fn(&Config, &str) -> Vec<String>,
}

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text, or text of the form that the help describes.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// `true`, `false` or a whole number.
    Order,
    /// A whole number.
    Count,
    /// Bytes: `512M`.
    Size,
    /// A number of CPUs: `1.5`, or a share of one: `25%`.
    Cpus,
    /// A time: `30s`.
    Time,
    /// A list of texts of this form.
    List(&'static str),
    /// A program and its arguments.
    Words,
    /// `SOFT:HARD`, numbers or sizes.
    Limits,
}

/// When a change of a key takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    Live,
    /// When the guest next starts.
    NextStart,
}

/// What a key is set to: the text that `*` stands for, and one item, or those of a list.
pub(super) struct Input<'a> {
    pub name: &'a str,
    pub items: &'a [String],
}

/// Which item is wrong, and why.
pub(super) struct Fault(pub usize, pub String);

impl Kind {
    /// Whether `+=` and `-=` make sense.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Words)
    }

    /// What to write, in words.
    pub fn takes(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Choice(words) => format!("one of \"{}\"", words.join("\", \"")),
            Self::Bool => "true or false".to_owned(),
            Self::Order => "true, false or a whole number".to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Size => "a size such as \"512M\"".to_owned(),
            Self::Cpus => "a number of CPUs such as 1.5 or \"25%\"".to_owned(),
            Self::Time => "a time such as \"30s\"".to_owned(),
            Self::List(form) => format!("a list of strings such as [\"{form}\"]"),
            Self::Words => "a list of words such as [\"/bin/sleep\", \"100\"]".to_owned(),
            Self::Limits => "a limit or \"SOFT:HARD\" such as \"1024:4096\"".to_owned(),
        }
    }
}

impl Key {
    /// The part of `name` that `*` stands for; empty if this key has none.
    pub(super) fn variable<'a>(&self, name: &'a str) -> &'a str {
        let Some((before, after)) = self.name.split_once('*') else { return "" };
        name.strip_prefix(before).and_then(|n| n.strip_suffix(after)).unwrap_or("")
    }

    fn matches(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((before, after)) => name
                .strip_prefix(before)
                .and_then(|n| n.strip_suffix(after))
                .is_some_and(|n| !n.is_empty() && (after.is_empty() || !n.contains('.'))),
        }
    }
}

/// All keys, in the order of the documentation.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// The key that a dotted name means, if there is one.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.matches(name))
}

/// Whether keys stand below `name`.
pub(super) fn is_group(name: &str) -> bool {
    let parts = name.split('.').count();
    KEYS.iter().any(|key| {
        let group: Vec<&str> = key.name.split('.').take(parts).collect();
        key.name.split('.').count() > parts
            && group.iter().zip(name.split('.')).all(|(a, b)| *a == "*" || *a == b)
    })
}

/// Words of other tools whose key here has another name.
const ALIASES: [(&str, &str); 22] = [
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
    ("ports", "net.publish"),
    ("publish", "net.publish"),
    ("volumes", "mounts"),
    ("net", "net.mode"),
    ("dns", "net.dns"),
    ("cmd", "command"),
];

/// Keys, or groups of keys, that Holm is to have, and what it cannot do without them (docs/decisions/keys-to-come.md).
const TO_COME: [(&str, &str); 8] = [
    ("cpu.reserve", "Holm reserves no CPU time yet; cpu.share divides it when it is short"),
    ("disk", "Holm does not bound a guest's disk yet"),
    ("io", "Holm neither divides nor bounds what guests read and write yet"),
    ("net.ports", "Holm gives no guest a range of ports by itself yet; net.publish takes ranges"),
    ("net.reserve", "Holm does not divide the network's rate yet"),
    ("net.share", "Holm does not divide the network's rate yet"),
    ("net.cap", "Holm does not bound a guest's network rate yet"),
    ("include", "guest.toml cannot take in another file yet"),
];

fn to_come(name: &str) -> Option<&'static str> {
    let is = |key: &str| name.strip_prefix(key).is_some_and(|n| n.is_empty() || n.starts_with('.'));
    TO_COME.iter().find(|(key, _)| is(key)).map(|(_, lack)| *lack)
}

/// The sentence for a name that is no key.
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
    if let Some(lack) = to_come(name) {
        return format!("unknown key {name}: {lack}");
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let hint = ALIASES
        .iter()
        .find(|(a, _)| *a == name)
        .map(|(_, key)| *key)
        .or_else(|| nearest(name, KEYS.iter().map(|k| k.name)))
        // limit, or [mem] limit: the right word in no or the wrong group.
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
