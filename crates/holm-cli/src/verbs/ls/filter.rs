use holm::guest::Summary;

use super::columns::Column;

/// Which guests are listed: `COLUMN=PATTERN`.
#[derive(Clone)]
pub struct Filter {
    /// What is compared.
    pub column: &'static Column,
    pattern: String,
}

impl Filter {
    /// Reads a filter.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, pattern) = text.split_once('=').ok_or("write COLUMN=PATTERN")?;
        Ok(Self { column: Column::find(name)?, pattern: pattern.to_owned() })
    }

    fn matches(&self, guest: &Summary) -> bool {
        matches(self.pattern.as_bytes(), self.column.value(guest).plain().as_bytes())
    }
}

/// Whether a guest is listed: of the filters of each column one matches.
pub fn listed(filters: &[Filter], guest: &Summary) -> bool {
    let column_matches = |name| filters.iter().any(|f| f.column.name == name && f.matches(guest));
    filters.iter().all(|filter| column_matches(filter.column.name))
}

/// Whether `text` is as `pattern` says, in which `*` is any text and `?` any character.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to continue if what follows the last `*` does not match: it takes one more character.
    let mut star = None;
    while read < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, read));
            at += 1;
        } else if pattern.get(at).is_some_and(|&c| c == b'?' || c == text[read]) {
            (at, read) = (at + 1, read + 1);
        } else if let Some((before, taken)) = star {
            star = Some((before, taken + 1));
            (at, read) = (before + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text) in
            [("", ""), ("*", ""), ("*", "web"), ("w?b", "web"), ("w*b", "wxbxb"), ("*-1*", "a-b-1")]
        {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", ""), ("?", ""), ("w*c", "wxbxb"), ("web", "web1")]
        {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn wrong_filters() {
        assert!(Filter::parse("state").is_err_and(|e| e.contains("COLUMN=PATTERN")));
        assert!(Filter::parse("stat=x").is_err_and(|e| e.contains("there are: name, state")));
    }
}
