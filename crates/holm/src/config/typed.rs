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
        Kind::FlagOrCount | Kind::Count | Kind::Size | Kind::Cpus | Kind::Limits if whole => {
            text.parse::<i64>().map(Value::from).map_err(|e| e.to_string())
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
        Kind::Arguments => Ok(Value::Array(text.split_whitespace().collect())),
        _ => Ok(text.into()),
    }
}

/// The items of a value, as [`Input`](super::key::Input) takes them; `None` if one is not a string.
pub(super) fn items(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(array) => array.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        Value::String(s) => Some(vec![s.value().clone()]),
        other => Some(vec![other.to_string().trim().to_owned()]),
    }
}
