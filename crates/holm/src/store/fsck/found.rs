//! What a check finds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::import::Progress;
use crate::store::source::Source;

/// What may be damaged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// An object, by its path below `objects`.
    Object(String),
    /// A base.
    Base(String),
    /// A guest.
    Guest(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(path) => write!(f, "object {path}"),
            Self::Base(name) => write!(f, "base {name}"),
            Self::Guest(name) => write!(f, "guest {name}"),
        }
    }
}

/// What holm-import has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// What is damaged.
    pub subject: Subject,
    /// In which way, as a clause.
    pub reason: String,
}

/// What holm-import has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// How many objects.
    pub objects: u64,
    /// Their lengths together, in bytes.
    pub bytes: u64,
    /// How many images.
    pub images: u64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is damaged.
    pub subject: Subject,
    /// In which way, as a clause.
    pub reason: String,
    /// The bases and guests that need it.
    pub users: Vec<Subject>,
    /// Whether it is as it should be by now.
    pub repaired: bool,
    /// What to do, or what was done.
    pub remedy: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Fsck {
    /// What was looked at.
    pub looked: Looked,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// What a check does beside looking.
#[derive(Clone, Debug, Default)]
pub struct FsckOptions {
    /// Put damaged objects aside, and fetch them again.
    pub repair: bool,
    /// URL of the mirror that `debootstrap:` uses instead of the host's own.
    pub mirror: Option<String>,
    /// Another source that may have what is damaged, such as a backup; it comes first.
    pub from: Option<Source>,
}

/// A line of holm-import's output.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Damage(Damage),
    Looked(Looked),
    Progress(Progress),
}
