//! From what a key is given to its value in [`Config`], and back.

use super::key::{Input, Invalid};
use super::nearest::nearest;
use super::types::{Autostart, Config, Restart, Service};
use super::units::{self, Parsed};

/// The value of a key that takes one item.
pub(super) fn one<T>(input: &Input, parse: impl Fn(&str) -> Parsed<T>) -> Result<T, Invalid> {
    parse(input.items.first().map_or("", String::as_str))
        .map_err(|message| Invalid::item(0, message))
}

/// The values of a list.
pub(super) fn each<T>(input: &Input, parse: impl Fn(&str) -> Parsed<T>) -> Result<Vec<T>, Invalid> {
    let parsed = input.items.iter().enumerate();
    parsed.map(|(i, text)| parse(text).map_err(|message| Invalid::item(i, message))).collect()
}

pub(super) fn flag(input: &Input) -> Result<bool, Invalid> {
    one(input, |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text:?} is not true or false")),
    })
}

/// The value that belongs to one of several names.
pub(super) fn choice<T: Copy>(input: &Input, choices: &[(&str, T)]) -> Result<T, Invalid> {
    one(input, |text| {
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let hint = nearest(text, names.iter().copied()).map(|n| format!("; did you mean {n:?}?"));
        let list = format!("; write one of \"{}\"", names.join("\", \""));
        Err(format!("{text:?} is not known{}", hint.unwrap_or(list)))
    })
}

/// The name of a value, as [`choice`] reads it.
pub(super) fn choice_name<T: Copy + PartialEq>(value: T, choices: &[(&str, T)]) -> Vec<String> {
    choices.iter().filter(|c| c.1 == value).map(|c| c.0.to_owned()).collect()
}

/// An optional value as text.
pub(super) fn shown<T>(value: Option<T>, show: impl Fn(T) -> String) -> Vec<String> {
    value.map(show).into_iter().collect()
}

/// The service of this name, added if it is new.
pub(super) fn service<'a>(
    config: &'a mut Config,
    input: &Input,
) -> Result<&'a mut Service, Invalid> {
    let name = input.name;
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
        return Err(Invalid::name(format!(
            "{name:?} cannot name a service; use letters, digits, - and _"
        )));
    }
    let at = config.services.iter().position(|s| s.name == name).unwrap_or_else(|| {
        let new = Service { name: name.to_owned(), command: Vec::new(), restart: Restart::No };
        config.services.push(new);
        config.services.len() - 1
    });
    Ok(&mut config.services[at])
}

/// A program and its arguments.
pub(super) fn arguments(input: &Input) -> Result<Vec<String>, Invalid> {
    match input.items.first() {
        Some(program) if !program.is_empty() => Ok(input.items.to_vec()),
        _ => Err(Invalid::item(0, "names no program".to_owned())),
    }
}

pub(super) fn autostart(text: &str) -> Parsed<Option<Autostart>> {
    match text {
        "false" => Ok(None),
        "true" => Ok(Some(Autostart { order: 100 })),
        _ => match units::count(text, 0, u64::from(u32::MAX)) {
            Ok(n) => Ok(Some(Autostart { order: u32::try_from(n).unwrap_or(u32::MAX) })),
            Err(e) => {
                Err(format!("{e}; write true, false or a number for the order (true is 100)"))
            }
        },
    }
}
