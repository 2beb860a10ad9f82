//! Changes to a `guest.toml`, as typed on a command line.

use std::fmt;

use super::error::Error;

/// One change: `key=value`, `key+=value`, `key-=value`, or the removal of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Dotted name.
    pub key: String,
    /// What to do with it.
    pub op: Op,
}

/// What to do with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Give it this value. The items of a list are separated by commas, or form a TOML array.
    Set(String),
    /// Give a list these items.
    Items(Vec<String>),
    /// Add an item to a list.
    Add(String),
    /// Remove an item from a list.
    Remove(String),
    /// Reset it to the default.
    Unset,
}

impl Change {
    /// Reads `key=value`, `key+=value` or `key-=value`. Applying it checks key and value.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let Some((left, value)) = text.split_once('=') else {
            let message = "write KEY=VALUE, KEY+=VALUE or KEY-=VALUE".to_owned();
            return Err(Error::Change { change: text.to_owned(), message });
        };
        let value = value.to_owned();
        let (key, op) = match (left.strip_suffix('+'), left.strip_suffix('-')) {
            (Some(key), _) => (key, Op::Add(value)),
            (_, Some(key)) => (key, Op::Remove(value)),
            (None, None) => (left, Op::Set(value)),
        };
        Ok(Self { key: key.trim().to_owned(), op })
    }

    /// Sets `key` to a value.
    pub fn set(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), op: Op::Set(value.to_owned()) }
    }

    /// Sets the list `key` to these items.
    pub fn items(key: &str, items: &[String]) -> Self {
        Self { key: key.to_owned(), op: Op::Items(items.to_vec()) }
    }

    /// Adds an item to the list `key`.
    pub fn add(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), op: Op::Add(value.to_owned()) }
    }

    /// Resets `key`, or a group of keys, to its default.
    pub fn unset(key: &str) -> Self {
        Self { key: key.to_owned(), op: Op::Unset }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::Change { change: self.to_string(), message: message.into() }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            Op::Set(value) => write!(f, "{}={value}", self.key),
            Op::Items(items) => write!(f, "{}={items:?}", self.key),
            Op::Add(value) => write!(f, "{}+={value}", self.key),
            Op::Remove(value) => write!(f, "{}-={value}", self.key),
            Op::Unset => write!(f, "unset {}", self.key),
        }
    }
}
