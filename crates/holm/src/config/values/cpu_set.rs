//! Sets of CPUs: `0-3,6`.

use crate::config::units::Parsed;

/// The kernel's list form, `0-3,6`.
pub(in crate::config) fn cpu_set(text: &str) -> Parsed<String> {
    let wrong = || format!("{text:?} is not a list of CPUs; write numbers and ranges, as 0-3,6");
    let text_ = text.replace(' ', "");
    for part in text_.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.parse::<u16>().ok().filter(|_| !t.starts_with('+'));
        match (number(first), number(last)) {
            (Some(a), Some(b)) if a <= b => {}
            _ => return Err(wrong()),
        }
    }
    Ok(text_)
}
