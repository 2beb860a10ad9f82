use serde::{Deserialize, Serialize};

use crate::config::{AccessRule, Net};

/// Which connections of a guest are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// `net.deny`.
    #[serde(with = "as_text")]
    pub deny: Vec<AccessRule>,
    /// `net.allow`: exceptions.
    #[serde(with = "as_text")]
    pub allow: Vec<AccessRule>,
}

impl Access {
    /// As these settings say.
    pub fn of(net: &Net) -> Self {
        Self { deny: net.deny.clone(), allow: net.allow.clone() }
    }

    /// Whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.allow.is_empty()
    }
}

/// The `serde` form: the items as `guest.toml` has them, and a space between.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::config::{AccessRule, access_rule};

    pub fn serialize<S: Serializer>(rules: &[AccessRule], to: S) -> Result<S::Ok, S::Error> {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        to.serialize_str(&rules.join(" "))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<AccessRule>, D::Error> {
        let text = String::deserialize(from)?;
        text.split_whitespace().map(|rule| access_rule(rule).map_err(D::Error::custom)).collect()
    }
}
