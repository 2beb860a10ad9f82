//! volume.toml, the description of a volume.

use serde::{Deserialize, Serialize};

/// The contents of volume.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// The most that it may hold, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The project id that all its files have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<u32>,
    /// The guest at whose start it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// Where that guest had it: its first content is what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Meta {
    /// The text of volume.toml.
    pub fn to_text(&self) -> String {
        // A struct of strings and integers below 2^63 always serializes.
        toml::to_string(self).unwrap_or_default()
    }
}

/// Parses the text of a volume.toml.
pub(super) fn parse(text: &str) -> Result<Meta, toml::de::Error> {
    toml::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let meta = Meta {
            created: 1_700_000_000,
            size: Some(20 << 30),
            project: Some(7 << 26 | 1),
            guest: Some("db".into()),
            target: Some("/var/lib/\"odd\"".into()),
        };
        assert_eq!(parse(&meta.to_text()).unwrap(), meta);
        assert!(parse("size = 1").unwrap_err().to_string().contains("created"));
    }
}
