//! Ports: `80`, `8000-8009`.

use std::ops::RangeInclusive;

use crate::config::units::Parsed;

/// A port, or those from the first to the last.
pub fn port_range(text: &str) -> Parsed<RangeInclusive<u16>> {
    let port = |t: &str| match t.parse::<u16>() {
        Ok(p) if p > 0 && !t.starts_with('+') => Ok(p),
        _ => Err(format!("{t:?} is not a port, 1 to 65535")),
    };
    let (first, last) = match text.split_once('-') {
        None => (port(text)?, port(text)?),
        Some((a, b)) => (port(a)?, port(b)?),
    };
    if first <= last { Ok(first..=last) } else { Err(format!("the range {text} runs backwards")) }
}
