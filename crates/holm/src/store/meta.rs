//! base.toml, the description of a base.

use serde::{Deserialize, Serialize};

/// The contents of base.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseMeta {
    /// Where it came from, as given to `holm base import`.
    pub source: String,
    /// When it was imported, seconds since 1970.
    pub created: u64,
    /// The number of files, directories and links in it.
    pub files: u64,
    /// Bytes of all its file bodies; hard-linked files count once.
    pub bytes: u64,
    /// Bytes of the bodies that no other base has; in the file, at the time of the import.
    pub own_bytes: u64,
    /// Path of the init that it contains, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_init: Option<String>,
    /// What kind of init that is: "systemd 257", "sysvinit", "openrc", "runit".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_kind: Option<String>,
    /// `PRETTY_NAME` of its os-release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// The architecture of its programs, as `uname -m` names it; empty if it contains none.
    #[serde(default)]
    pub arch: String,
    /// The fs-verity digest of its image; empty if that was not recorded.
    #[serde(default)]
    pub image_digest: String,
}

impl BaseMeta {
    /// The text of base.toml.
    pub fn to_text(&self) -> String {
        // A struct of strings and integers below 2^63 always serializes.
        toml::to_string(self).unwrap_or_default()
    }
}

/// Parses the text of a base.toml.
pub fn parse(text: &str) -> Result<BaseMeta, toml::de::Error> {
    toml::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let meta = BaseMeta {
            source: "tar /tmp/\"odd\" name.tar".into(),
            created: 1_700_000_000,
            files: 12,
            bytes: 5 << 30,
            own_bytes: 7,
            system_init: Some("/sbin/init".into()),
            init_kind: Some("systemd 257".into()),
            os: None,
            arch: "x86_64".into(),
            image_digest: "0123".into(),
        };
        assert_eq!(parse(&meta.to_text()).unwrap(), meta);
    }

    #[test]
    fn missing_field_is_an_error_that_names_it() {
        let error = parse("source = \"busybox\"\ncreated = 1\nfiles = 2\nbytes = 3\n").unwrap_err();
        assert!(error.to_string().contains("own_bytes"), "{error}");
    }

    #[test]
    fn optional_fields_may_be_missing() {
        let meta =
            parse("source = \"x\"\ncreated = 1\nfiles = 2\nbytes = 3\nown_bytes = 0\n").unwrap();
        assert_eq!(meta.system_init, None);
        assert_eq!(meta.arch, "");
    }
}
