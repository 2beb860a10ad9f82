//! Applies changes to a `guest.toml` and keeps its comments and its order.

use toml_edit::{Array, DocumentMut, Item, RawString, Table, TableLike, Value};

use super::change::{Change, Op};
use super::error::Error;
use super::key::{Input, Key};
use super::keys;
use super::parse::parse;
use super::typed::{items, value};
use super::types::Config;

/// The text with `changes` applied. Each is checked, and the result is a valid `guest.toml`.
pub fn edit_text(text: &str, changes: &[Change]) -> Result<String, Error> {
    const ORIGIN: &str = "guest.toml";
    let mut document: DocumentMut = match text.parse() {
        Ok(document) => document,
        // Our own parser reports the same mistake with line and excerpt.
        Err(e) => {
            parse(text, ORIGIN)?;
            return Err(Error::at(text, ORIGIN, e.span().unwrap_or(0..0), e.message().to_owned()));
        }
    };
    for change in changes {
        apply(&mut document, change)?;
    }
    let text = document.to_string();
    parse(&text, ORIGIN)?;
    Ok(text)
}

fn apply(document: &mut DocumentMut, change: &Change) -> Result<(), Error> {
    let path: Vec<&str> = change.key.split('.').collect();
    let key = match (keys::find(&change.key), &change.op) {
        (Some(key), _) => key,
        (None, Op::Unset) if keys::is_group(&change.key) => {
            remove(document.as_table_mut(), &path);
            return Ok(());
        }
        (None, _) => return Err(change.error(keys::unknown(&change.key))),
    };
    match &change.op {
        Op::Unset => remove(document.as_table_mut(), &path),
        Op::Set(text) => {
            let value = value(key, text).map_err(|e| change.error(e))?;
            let checked = items(&value).ok_or_else(|| change.error("lists hold strings only"))?;
            check(key, change, &checked)?;
            *slot(document, &path, change)? = decorated_as(value, document_value(document, &path));
        }
        Op::Items(items) => {
            list_only(key, change)?;
            check(key, change, items)?;
            let value = Value::Array(items.iter().map(String::as_str).collect());
            *slot(document, &path, change)? = decorated_as(value, document_value(document, &path));
        }
        Op::Add(text) => {
            list_only(key, change)?;
            check(key, change, std::slice::from_ref(text))?;
            push(array(document, &path, change)?, text);
        }
        Op::Remove(text) => {
            list_only(key, change)?;
            let wanted = check(key, change, std::slice::from_ref(text))?;
            let array = array(document, &path, change)?;
            let same = |v: &Value| v.as_str().is_some_and(|s| canonical(key, change, s) == wanted);
            let Some(at) = array.iter().position(same) else {
                return Err(change.error(format!("{} does not contain it", change.key)));
            };
            array.remove(at);
            if array.is_empty() {
                remove(document.as_table_mut(), &path);
            }
        }
    }
    Ok(())
}

fn list_only(key: &Key, change: &Change) -> Result<(), Error> {
    if key.kind.is_list() {
        return Ok(());
    }
    Err(change.error(format!("{} is not a list; write {}=VALUE", change.key, change.key)))
}

/// Checks items by setting them, and returns them in their canonical form.
fn check(key: &Key, change: &Change, items: &[String]) -> Result<Vec<String>, Error> {
    let mut scratch = Config::default();
    let name = key.variable(&change.key);
    let input = Input { name, items };
    (key.set)(&mut scratch, &input).map_err(|invalid| change.error(invalid.message))?;
    Ok((key.show)(&scratch, name))
}

fn canonical(key: &Key, change: &Change, item: &str) -> Vec<String> {
    check(key, change, &[item.to_owned()]).unwrap_or_default()
}

/// The value with the whitespace and the comment around the old one.
fn decorated_as(mut value: Value, old: Option<Value>) -> Item {
    if let Some(old) = old {
        *value.decor_mut() = old.decor().clone();
    }
    Item::Value(value)
}

fn document_value(document: &DocumentMut, path: &[&str]) -> Option<Value> {
    let mut item = document.as_item();
    for part in path {
        item = item.get(part)?;
    }
    item.as_value().cloned()
}

/// The item of a key, created if it is new: in its table if there is one, else as a dotted key.
fn slot<'a>(
    document: &'a mut DocumentMut,
    path: &[&str],
    change: &Change,
) -> Result<&'a mut Item, Error> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let (last, groups) = path.split_last().unwrap_or((&"", &[]));
    for group in groups {
        let item = table.entry(group).or_insert_with(|| {
            let mut new = Table::new();
            new.set_dotted(true);
            Item::Table(new)
        });
        table = item
            .as_table_like_mut()
            .ok_or_else(|| change.error(format!("{group} is not a table in this file")))?;
    }
    Ok(table.entry(last).or_insert(Item::None))
}

/// The list of a key, created if it is new.
fn array<'a>(
    document: &'a mut DocumentMut,
    path: &[&str],
    change: &Change,
) -> Result<&'a mut Array, Error> {
    let item = slot(document, path, change)?;
    if item.is_none() {
        *item = Item::Value(Value::Array(Array::new()));
    }
    item.as_array_mut().ok_or_else(|| change.error("it is not a list in this file"))
}

/// Appends to a list; if its items have a line each, the new one gets its own line too.
fn push(array: &mut Array, text: &str) {
    let last = array.iter().last().and_then(|v| v.decor().prefix()).and_then(RawString::as_str);
    let Some((_, indent)) = last.and_then(|prefix| prefix.rsplit_once('\n')) else {
        array.push(text);
        return;
    };
    let after = array.trailing().as_str().unwrap_or("").trim_end().to_owned();
    let value = Value::from(text).decorated(format!("{after}\n{indent}"), "");
    array.push_formatted(value);
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}

/// Removes a key, and the groups that become empty.
fn remove(table: &mut dyn TableLike, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            table.remove(last);
        }
        [group, rest @ ..] => {
            let Some(inner) = table.get_mut(group).and_then(Item::as_table_like_mut) else {
                return;
            };
            remove(inner, rest);
            if inner.is_empty() {
                table.remove(group);
            }
        }
    }
}
