//! Names: of bases, hosts, interfaces and environment variables.

use crate::config::units::Parsed;

/// A name of a base or a guest, as `pool::Name` has it.
pub(in crate::config) fn name(text: &str) -> Parsed<String> {
    let good = text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is not a valid name; use 1 to 63 letters, digits, '.', '_' and '-', a letter or digit first"
        ))
    }
}

/// Labels of letters, digits and `-`, at most 64 bytes (the kernel's limit).
pub(in crate::config) fn hostname(text: &str) -> Parsed<String> {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if text.len() <= 64 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is not a valid host name; use at most 64 letters, digits, '-' and '.'"
        ))
    }
}

/// A name of a network interface, as the kernel takes it (`dev_valid_name`).
pub(in crate::config) fn interface(text: &str) -> Parsed<String> {
    let good = (1..=15).contains(&text.len())
        && !matches!(text, "." | "..")
        && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '/' | ':'));
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} cannot name a network interface (`ip link` lists them)"))
    }
}

/// A name of an environment variable.
pub(in crate::config) fn variable(text: &str) -> Parsed<String> {
    let good = !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} cannot name a variable; use letters, digits and _"))
    }
}
