//! From the settings of a command line to a config, without a `guest.toml` in between: `holm run`
//! starts guests that never have one.

use toml_edit::Value;

use super::change::{Change, Op};
use super::check::check;
use super::edit::edit_text;
use super::entry::Entry;
use super::error::Error;
use super::key::{Input, Key, Kind};
use super::keys::find;
use super::parse::parse;
use super::typed::{items, value};
use super::types::Config;

/// The config that `changes` describe: the same as [`parse`] of what [`edit_text`] writes, in a
/// tenth of the time.
///
/// Whatever this cannot read goes through the text, so that errors are the same.
pub fn from_changes(changes: &[Change]) -> Result<Config, Error> {
    match assemble(changes) {
        Some(config) => Ok(config),
        None => parse(&edit_text("", changes)?, "guest.toml"),
    }
}

/// Sets each key in turn; `None` for anything that `parse` might refuse or read differently.
fn assemble(changes: &[Change]) -> Option<Config> {
    let mut given: Vec<(&Key, &str, Vec<String>)> = Vec::new();
    for change in changes {
        let key = find(&change.key)?;
        let name = change.key.as_str();
        // Needs quotes in TOML, which is left to its parser.
        if key.variable(name).contains('.') {
            return None;
        }
        let known = given.iter().position(|(_, known, _)| *known == name);
        let at = known.unwrap_or_else(|| {
            given.push((key, name, Vec::new()));
            given.len() - 1
        });
        let items = &mut given[at].2;
        match &change.op {
            // A value that a later one replaces must be valid too.
            Op::Set(_) | Op::Items(_) if known.is_some() => return None,
            Op::Set(text) => *items = checked(key, &value(key, text).ok()?)?,
            Op::Items(new) if key.kind.is_list() => items.clone_from(new),
            Op::Add(text) if key.kind.is_list() => items.push(text.clone()),
            _ => return None,
        }
        if items.iter().any(|item| item.contains('\0')) {
            return None;
        }
    }
    let mut config = Config::default();
    let mut entries = Vec::new();
    for (key, name, items) in given {
        let input = Input { name: key.variable(name), items: &items };
        (key.set)(&mut config, &input).ok()?;
        let items = vec![0..0; items.len()];
        entries.push(Entry { key: name.to_owned(), span: 0..0, items });
    }
    check(&mut config, &entries).ok()?;
    Some(config)
}

/// The items of a value, if its TOML type is one that the key takes.
fn checked(key: &Key, value: &Value) -> Option<Vec<String>> {
    let fits = match key.kind {
        Kind::Bool => value.is_bool(),
        Kind::Text | Kind::Choice(_) => value.is_str(),
        Kind::List(_) | Kind::Arguments => value.is_array(),
        Kind::FlagOrCount => value.is_bool() || value.is_integer() || value.is_str(),
        _ => value.is_integer() || value.is_float() || value.is_str(),
    };
    items(value).filter(|_| fits)
}
