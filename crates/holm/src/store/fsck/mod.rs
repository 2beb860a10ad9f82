//! Checking the store: objects against their names, images against their objects.
//!
//! ```text
//! objects/.quarantine/abcdef...   an object whose content was not what its name says
//! ```
//!
//! While it reads, objects are locked shared: imports, unifications and starts go on, and a
//! collection is made later.

mod repair;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::base::damaged;
use super::clean::clean;
use super::error::Error;
use super::import::Progress;
use super::source::Source;
use super::{directory, objects, program};
use crate::failed::{in_one_line, is_there, unless_gone};
use crate::pool::Pool;
use repair::repair;

/// The mode of an object. What a guest sees is in the image.
const MODE: u32 = 0o444;

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
enum Line {
    Damage(Damage),
    Looked(Looked),
    Progress(Progress),
}

/// Checks all bases, images and objects. Calls `progress` a few times a second.
pub fn fsck(
    pool: &Pool,
    options: &FsckOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fsck, Error> {
    clean(pool)?;
    let lock = directory::share_objects(pool)?;
    let (looked, found) = check(pool, &[], progress)?;
    let mut fsck = Fsck { looked, problems: Vec::new() };
    for (name, error) in damaged(pool)? {
        let (reason, remedy) = (in_one_line(&error), import_again(name.as_str()));
        fsck.problems.push(problem(Subject::Base(name.to_string()), reason, remedy));
    }
    if let Some(source) = &options.from {
        source.check()?;
    }
    let users = users(pool, &mut fsck.problems)?;
    let mut bad = BTreeMap::new();
    for Damage { subject, reason } in found {
        match subject {
            Subject::Object(path) => drop(bad.insert(path, reason)),
            Subject::Base(ref name) => {
                let remedy = import_again(name);
                fsck.problems.push(problem(subject, reason, remedy));
            }
            Subject::Guest(_) => fsck.problems.push(problem(
                subject,
                reason,
                "save what its other files are worth (holm exec, tar), and create it anew".into(),
            )),
        }
    }
    for path in users.keys() {
        let object = pool.objects_dir().join(path);
        let found = fs::symlink_metadata(&object);
        match unless_gone(found).map_err(Error::io("look at", &object))? {
            None => drop(bad.insert(path.clone(), "it is missing".to_owned())),
            Some(found) if found.is_file() && (found.uid() != 0 || found.mode() & 0o7222 != 0) => {
                let users = users.get(path).cloned().unwrap_or_default();
                let problem = writable(path, &object, options.repair)?;
                fsck.problems.push(Problem { users, ..problem });
            }
            Some(_) => {}
        }
    }
    let left = if options.repair && !bad.is_empty() {
        repair(pool, &bad, &users, options, progress)?
    } else {
        bad.keys().map(|path| (path.clone(), String::new())).collect()
    };
    drop(lock);
    for (path, reason) in bad {
        let failed = left.get(&path);
        let remedy = match failed {
            None => "stored again; guests that run may have the old content until they restart",
            Some(_) if !options.repair => "holm fsck --repair",
            Some(why) => why,
        };
        fsck.problems.push(Problem {
            users: users.get(&path).cloned().unwrap_or_default(),
            repaired: failed.is_none(),
            remedy: remedy.to_owned(),
            ..problem(Subject::Object(path), reason, String::new())
        });
    }
    Ok(fsck)
}

/// An object to which others than root may write. Guests do not notice.
fn writable(path: &str, object: &Path, repair: bool) -> Result<Problem, Error> {
    let reason = "its owner or mode has been changed, so that it may be written to".to_owned();
    let mut problem =
        problem(Subject::Object(path.to_owned()), reason, "holm fsck --repair".into());
    if repair {
        chown(object, Some(0), Some(0))
            .and_then(|()| fs::set_permissions(object, fs::Permissions::from_mode(MODE)))
            .map_err(Error::io("change the mode of", object))?;
        (problem.repaired, problem.remedy) = (true, "it is root's again, to be read only".into());
    }
    Ok(problem)
}

fn problem(subject: Subject, reason: String, remedy: String) -> Problem {
    Problem { subject, reason, users: Vec::new(), repaired: false, remedy }
}

fn import_again(base: &str) -> String {
    format!("remove it (holm base rm {base}) and import it again")
}

/// Has holm-import read all objects and images, or `only` these objects.
fn check(
    pool: &Pool,
    only: &[&str],
    progress: &mut dyn FnMut(Progress),
) -> Result<(Looked, Vec<Damage>), Error> {
    let mut command = program::command(pool)?;
    command.arg("--check").arg("--").args(only);
    let (mut looked, mut found) = (Looked::default(), Vec::new());
    let outcome = program::run(command, |line| match serde_json::from_str(line) {
        Ok(Line::Damage(one)) => found.push(one),
        Ok(Line::Looked(all)) => looked = all,
        Ok(Line::Progress(step)) => progress(step),
        _ => {}
    })?;
    outcome.map_err(|message| Error::Fsck { message })?;
    Ok((looked, found))
}

/// Which bases and guests need each object. A list that cannot be read is a problem of its own.
fn users(
    pool: &Pool,
    problems: &mut Vec<Problem>,
) -> Result<BTreeMap<String, Vec<Subject>>, Error> {
    let mut users: BTreeMap<String, Vec<Subject>> = BTreeMap::new();
    let bases = pool
        .bases()?
        .into_iter()
        .map(|name| (pool.base_dir(&name).join("objects"), Subject::Base(name.to_string())));
    let guests = pool
        .guests()?
        .into_iter()
        .map(|name| (pool.guest_dir(&name).join("disk/objects"), Subject::Guest(name.to_string())));
    for (list, user) in bases.chain(guests) {
        if !is_there(&list)? {
            continue;
        }
        match objects::read(&list) {
            Ok(objects) => {
                for object in objects {
                    users.entry(object.path).or_default().push(user.clone());
                }
            }
            Err(error) => {
                let remedy = "restore the file from a backup".to_owned();
                problems.push(problem(user, in_one_line(&error), remedy));
            }
        }
    }
    Ok(users)
}
