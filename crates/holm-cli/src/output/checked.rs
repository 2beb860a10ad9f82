use holm::store::{Fsck, Subject};
use serde::Serialize;

/// What `holm fsck` has found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    /// Whether nothing is wrong by now.
    ok: bool,
    /// Objects that were read.
    objects: u64,
    /// Their lengths together.
    size_bytes: u64,
    /// Metadata images that were read, of bases and of guests.
    images: u64,
    /// What was wrong.
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Problem {
    /// What is damaged.
    kind: Kind,
    /// Its name; that of an object is its path below `objects`.
    name: String,
    /// In which way.
    reason: String,
    /// The bases that need it.
    bases: Vec<String>,
    /// The guests that need it beside their bases.
    guests: Vec<String>,
    /// Whether it was repaired.
    repaired: bool,
    /// What to do, or what was done.
    remedy: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Kind {
    Object,
    Base,
    Guest,
}

impl From<&Fsck> for Checked {
    fn from(fsck: &Fsck) -> Self {
        let problem = |problem: &holm::store::Problem| {
            let (kind, name) = match &problem.subject {
                Subject::Object(path) => (Kind::Object, path),
                Subject::Base(name) => (Kind::Base, name),
                Subject::Guest(name) => (Kind::Guest, name),
            };
            let (mut bases, mut guests) = (Vec::new(), Vec::new());
            for user in &problem.users {
                match user {
                    Subject::Base(name) => bases.push(name.clone()),
                    Subject::Guest(name) | Subject::Object(name) => guests.push(name.clone()),
                }
            }
            Problem {
                kind,
                name: name.clone(),
                reason: problem.reason.clone(),
                bases,
                guests,
                repaired: problem.repaired,
                remedy: problem.remedy.clone(),
            }
        };
        Self {
            ok: fsck.problems.iter().all(|problem| problem.repaired),
            objects: fsck.looked.objects,
            size_bytes: fsck.looked.bytes,
            images: fsck.looked.images,
            problems: fsck.problems.iter().map(problem).collect(),
        }
    }
}
