use std::fmt;

use crate::{Code, Coded, Details};

/// A name that Holm does not accept.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name:?} cannot be a name: {reason}; use up to 63 letters, digits, '.', '_', '-', \
     the first a letter or a digit"
)]
pub struct BadName {
    /// The name.
    name: String,
    /// Why it is not accepted.
    reason: &'static str,
}

/// The name of a guest, a base or a volume: safe as a file name, a cgroup and a host name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The length of a label in a host name (RFC 1035).
    pub const MAX: usize = 63;

    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let bad = |reason| Err(BadName { name: shorten(name), reason });
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match name.chars().next() {
            None => bad("it is empty"),
            Some(_) if name.len() > Self::MAX => bad("it is too long"),
            Some(_) if !name.chars().all(allowed) => bad("it has a character that is not allowed"),
            Some(first) if !first.is_ascii_alphanumeric() => {
                bad("its first character is not allowed")
            }
            Some(_) => Ok(Self(name.to_owned())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= 80 {
        return name.to_owned();
    }
    name.chars().take(77).chain("...".chars()).collect()
}

impl Coded for BadName {
    fn details(&self) -> Details {
        Details::new(Code::NameInvalid)
            .object(&self.name)
            .reason(self.reason)
            .remedy("use up to 63 letters, digits, '.', '_', '-', the first a letter or a digit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_is_safe_everywhere() {
        for name in ["a", "web", "web-1", "db_2.example", "9", &"x".repeat(63)] {
            assert_eq!(Name::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        let long = "x".repeat(300);
        for (name, reason) in [
            ("", "empty"),
            (".", "first character"),
            ("..", "first character"),
            ("-a", "first character"),
            (".new-1", "first character"),
            ("a/b", "not allowed"),
            ("../a", "not allowed"),
            ("a b", "not allowed"),
            ("a\0", "not allowed"),
            ("ü", "not allowed"),
            (&long, "too long"),
        ] {
            let message = Name::new(name).unwrap_err().to_string();
            assert!(message.contains(reason), "{name:?}: {message}");
            assert!(message.len() < 260, "{message}");
        }
    }
}
