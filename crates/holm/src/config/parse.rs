//! From text to [`Config`]: looks up each key in the table, converts its value, checks the result.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::check;
use super::entry::Entry;
use super::error::Error;
use super::key::{Input, Key, Kind};
use super::keys;
use super::types::Config;

/// Reads a `guest.toml`; `origin` names it in errors, which carry line, column and an excerpt.
pub fn parse(text: &str, origin: &str) -> Result<Config, Error> {
    read(text, origin).map(|(config, _)| config)
}

/// A mistake in the bytes of a span.
struct Mistake(Range<usize>, String);

/// As [`parse`], and returns the entries in the order of the file.
pub(super) fn read(text: &str, origin: &str) -> Result<(Config, Vec<Entry>), Error> {
    let document = DeTable::parse(text).map_err(|e| {
        Error::at(text, origin, e.span().unwrap_or(0..0), e.message().trim_end().to_owned())
    })?;
    let mut reader = Reader { config: Config::default(), entries: Vec::new() };
    reader
        .table("", document.get_ref())
        .map_err(|Mistake(span, message)| Error::at(text, origin, span, message))?;
    let Reader { mut config, entries } = reader;
    check(&mut config, &entries).map_err(|conflict| {
        let span = entries
            .iter()
            .find(|entry| entry.key == conflict.key)
            .map_or(0..0, |entry| entry.span_of(conflict.item));
        Error::at(text, origin, span, conflict.message)
    })?;
    Ok((config, entries))
}

struct Reader {
    config: Config,
    entries: Vec<Entry>,
}

impl Reader {
    /// All keys of a table, whose own dotted name is `prefix`.
    fn table(&mut self, prefix: &str, table: &DeTable) -> Result<(), Mistake> {
        // The map sorts by name; errors and services follow the order of the file.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, value)| (key.span().start, value.span().start));
        for (key, value) in entries {
            let name = match prefix {
                "" => key.get_ref().to_string(),
                _ => format!("{prefix}.{}", key.get_ref()),
            };
            match (keys::find(&name), value.get_ref()) {
                (Some(found), _) => self.value(found, name, value)?,
                (None, DeValue::Table(inner)) if keys::is_group(&name) => {
                    self.table(&name, inner)?;
                }
                (None, _) => return Err(Mistake(key.span(), keys::unknown(&name))),
            }
        }
        Ok(())
    }

    fn value(&mut self, key: &Key, name: String, value: &Spanned<DeValue>) -> Result<(), Mistake> {
        let (texts, items) = match value.get_ref() {
            DeValue::Array(array) if key.kind.is_list() => {
                let mut texts = Vec::new();
                for item in array {
                    let text = scalar(&Kind::Text, &name, item.get_ref())
                        .map_err(|message| Mistake(item.span(), message))?;
                    texts.push(text);
                }
                (texts, array.iter().map(Spanned::span).collect())
            }
            other => {
                let text = scalar(&key.kind, &name, other)
                    .map_err(|message| Mistake(value.span(), message))?;
                (vec![text], vec![value.span()])
            }
        };
        let input = Input { name: key.variable(&name), items: &texts };
        (key.set)(&mut self.config, &input).map_err(|invalid| {
            let item = invalid.item.and_then(|at| items.get(at)).cloned();
            Mistake(item.unwrap_or_else(|| value.span()), format!("{name}: {}", invalid.message))
        })?;
        self.entries.push(Entry { key: name, span: value.span(), items });
        Ok(())
    }
}

/// The text of a single value, if its TOML type fits the kind.
fn scalar(kind: &Kind, name: &str, value: &DeValue) -> Result<String, String> {
    let text = match (kind, value) {
        (Kind::Bool | Kind::FlagOrCount, DeValue::Boolean(b)) => Some(b.to_string()),
        (Kind::Text | Kind::Choice(_), DeValue::String(s)) => Some(s.to_string()),
        (Kind::List(_) | Kind::Arguments | Kind::Bool | Kind::Text | Kind::Choice(_), _) => None,
        (_, DeValue::String(s)) => Some(s.to_string()),
        (_, DeValue::Integer(n)) if n.radix() == 10 => {
            let digits = n.as_str();
            // The editor refuses such a number, though the parser does not look.
            if digits.replace('_', "").parse::<i64>().is_err() {
                return Err(format!("{name}: {digits} is too large for a TOML integer"));
            }
            Some(digits.to_owned())
        }
        (_, DeValue::Float(n)) => Some(n.as_str().to_owned()),
        _ => None,
    };
    if text.as_ref().is_some_and(|t| t.contains('\0')) {
        return Err(format!("{name} must not contain a zero byte"));
    }
    text.ok_or_else(|| format!("{name} takes {}, not {}", kind.takes(), called(value)))
}

/// What TOML calls a value, with its article.
fn called(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(n) if n.radix() != 10 => "a number of another base than ten",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
