//! What a key of `guest.toml` is.

use super::types::Config;

/// A key of `guest.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Dotted name; `*` stands for a name of the user's (`env.*`).
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What applies when the key is absent, as a description.
    pub default: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    /// One line of help.
    pub help: &'static str,
    pub(super) set: fn(&mut Config, &Input) -> Result<(), Invalid>,
    pub(super) show: fn(&Config, &str) -> Vec<String>,
}

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text, or text of the form that the help describes.
    Text,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// `true`, `false` or a whole number.
    FlagOrCount,
    /// A whole number.
    Count,
    /// Bytes: `512M`.
    Size,
    /// A number of CPUs: `1.5`, or a share of one: `25%`.
    Cpus,
    /// A time: `30s`.
    Time,
    /// Bits in a second: `10M`.
    Rate,
    /// A list of texts of this form.
    List(&'static str),
    /// A program and its arguments.
    Arguments,
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

/// Why a key cannot be set to what it was given.
pub(super) struct Invalid {
    /// Which item is at fault; `None` if it is not an item but the name that `*` stands for.
    pub item: Option<usize>,
    pub message: String,
}

impl Invalid {
    /// The item at this place is wrong.
    pub(super) fn item(at: usize, message: String) -> Self {
        Self { item: Some(at), message }
    }

    /// The name that `*` stands for is wrong.
    pub(super) fn name(message: String) -> Self {
        Self { item: None, message }
    }
}

impl Kind {
    /// Whether `+=` and `-=` make sense.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Arguments)
    }

    /// Describes what to write.
    pub fn takes(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Choice(names) => format!("one of \"{}\"", names.join("\", \"")),
            Self::Bool => "true or false".to_owned(),
            Self::FlagOrCount => "true, false or a whole number".to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Size => "a size such as \"512M\"".to_owned(),
            Self::Cpus => "a number of CPUs such as 1.5 or \"25%\"".to_owned(),
            Self::Time => "a time such as \"30s\"".to_owned(),
            Self::Rate => "a rate such as \"10M\"".to_owned(),
            Self::List(form) => format!("a list of strings such as [\"{form}\"]"),
            Self::Arguments => {
                "a program and its arguments such as [\"/bin/sleep\", \"100\"]".to_owned()
            }
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

    /// Whether `name` means this key.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((before, after)) => name
                .strip_prefix(before)
                .and_then(|n| n.strip_suffix(after))
                .is_some_and(|n| !n.is_empty() && (after.is_empty() || !n.contains('.'))),
        }
    }
}
