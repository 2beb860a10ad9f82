//! From the value typed for a key on a command line to TOML.

use toml_edit::Value;

use super::key::{Key, Kind};

/// The TOML value of `text`.
pub(super) fn value(key: &Key, text: &str) -> Result<Value, String> {
    let whole = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match key.kind {
        Kind::Bool | Kind::FlagOrCount if matches!(text, "true" | "false") => {
            Ok((text == "true").into())
        }
        Kind::FlagOrCount | Kind::Count | Kind::Size | Kind::Cpus | Kind::Rate | Kind::Limits
            if whole =>
        {
            // What does not fit is refused as text, by a message that knows the key's range.
            Ok(text.parse::<i64>().map_or_else(|_| text.into(), Value::from))
        }
        Kind::Cpus if text.parse::<f64>().is_ok_and(f64::is_finite) => {
            Ok(text.parse::<f64>().unwrap_or_default().into())
        }
        Kind::List(_) | Kind::Arguments if text.starts_with('[') => {
            text.parse::<Value>().map_err(|e| format!("not a TOML list: {}", e.message()))
        }
        Kind::List(_) => {
            Ok(Value::Array(text.split(',').map(str::trim).filter(|t| !t.is_empty()).collect()))
        }
        Kind::Arguments => Ok(Value::Array(words(text)?.into_iter().collect())),
        _ => Ok(text.into()),
    }
}

/// The arguments that a shell makes of `text`, which has no variables and no patterns: quotes and
/// backslashes keep what is between or behind them.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let kept = rest.next().ok_or_else(|| unfinished(text, "a backslash"))?;
                let word = word.get_or_insert_default();
                if quote.is_some() && !matches!(kept, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(kept);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(unfinished(text, "a quote that is not closed"));
    }
    words.extend(word);
    Ok(words)
}

fn unfinished(text: &str, end: &str) -> String {
    format!("{text:?} ends in {end}; a list says it plainly, as [\"sh\", \"-c\", \"echo a b\"]")
}

/// The items of a value, as [`Input`](super::key::Input) takes them; `None` if one is not a string.
pub(super) fn items(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(array) => array.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        Value::String(s) => Some(vec![s.value().clone()]),
        other => Some(vec![other.to_string().trim().to_owned()]),
    }
}
