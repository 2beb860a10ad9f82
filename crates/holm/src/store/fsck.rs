//! Checking the store: objects against their names, images against their objects.
//!
//! ```text
//! objects/.quarantine/abcdef...   an object whose content was not what its name says
//! ```
//!
//! While it reads, objects are locked shared: imports, unifications and starts go on, and a
//! collection is made later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::base::{damaged, load};
use super::clean::clean;
use super::error::Error;
use super::import::Progress;
use super::source::Source;
use super::{directory, gc, objects, program};
use crate::failed::{in_one_line, is_there, unless_gone};
use crate::pool::{Name, Pool};
use crate::step;

/// Where damaged objects are kept, below `objects`.
const QUARANTINE: &str = ".quarantine";

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
        if !is_there(&pool.objects_dir().join(path))? {
            bad.insert(path.clone(), "it is missing".to_owned());
        }
    }
    let left = if options.repair && !bad.is_empty() {
        repair(pool, &bad, &users, options.mirror.as_deref(), progress)?
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
            Err(error @ Error::Objects { .. }) => {
                let remedy = "restore the file from a backup".to_owned();
                problems.push(problem(user, in_one_line(&error), remedy));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(users)
}

/// Keeps damaged objects aside, and stores them again from the sources of the bases that have them.
/// Returns those that are left, with the reason; nobody can read them any more.
fn repair(
    pool: &Pool,
    bad: &BTreeMap<String, String>,
    users: &BTreeMap<String, Vec<Subject>>,
    mirror: Option<&str>,
    progress: &mut dyn FnMut(Progress),
) -> Result<BTreeMap<String, String>, Error> {
    for path in bad.keys() {
        quarantine(pool, path)?;
    }
    step::done("fsck-quarantined");
    let mut left: BTreeMap<String, String> =
        bad.keys().map(|path| (path.clone(), "no base with a source has it".to_owned())).collect();
    let bases: BTreeSet<&Subject> =
        bad.keys().filter_map(|path| users.get(path)).flatten().collect();
    for base in bases {
        let Subject::Base(name) = base else { continue };
        let of_it = |path: &String| users.get(path).is_some_and(|users| users.contains(base));
        if !left.keys().any(of_it) {
            continue;
        }
        let outcome =
            restore(pool, &Name::new(name).map_err(crate::pool::Error::from)?, mirror, progress)?;
        let still = still_bad(pool, left.keys(), progress)?;
        left.retain(|path, _| still.contains(path));
        for (path, why) in &mut left {
            if of_it(path) {
                *why =
                    outcome.clone().unwrap_or(format!("the source of base {name} has it no more"));
            }
        }
    }
    for path in left.keys() {
        let object = pool.objects_dir().join(path);
        unless_gone(fs::remove_file(&object)).map_err(Error::io("remove", &object))?;
    }
    // A source that has changed has given objects that nothing needs.
    gc::request(pool)?;
    Ok(left)
}

/// Which of these objects are damaged or missing now.
fn still_bad<'a>(
    pool: &Pool,
    paths: impl Iterator<Item = &'a String>,
    progress: &mut dyn FnMut(Progress),
) -> Result<BTreeSet<String>, Error> {
    let paths: Vec<&str> = paths.map(String::as_str).collect();
    let (_, found) = check(pool, &paths, progress)?;
    let mut bad: BTreeSet<String> = found
        .into_iter()
        .filter_map(|damage| match damage.subject {
            Subject::Object(path) => Some(path),
            _ => None,
        })
        .collect();
    for path in paths {
        if !is_there(&pool.objects_dir().join(path))? {
            bad.insert(path.to_owned());
        }
    }
    Ok(bad)
}

/// Has the source of a base stored once more; why that was not possible.
fn restore(
    pool: &Pool,
    base: &Name,
    mirror: Option<&str>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<String>, Error> {
    let Ok(base) = load(pool, base) else {
        return Ok(Some(format!("base {base} cannot be loaded")));
    };
    let text = &base.meta.source;
    let refused = |why: &str| Ok(Some(format!("the source of base {}, {text}, {why}", base.name)));
    let Ok(source) = Source::parse(text.as_ref()) else { return refused("is none") };
    match &source {
        Source::Stdin => return refused("was standard input"),
        Source::Path(path) if path.is_relative() => return refused("is no absolute path"),
        Source::Path(path) if !is_there(path)? => return refused("is no longer there"),
        _ => {}
    }
    let mut command = program::command(pool)?;
    command.arg("--restore");
    if let Some(mirror) = mirror {
        command.arg("--mirror").arg(mirror);
    }
    command.arg("--").arg(source.to_arg());
    let outcome = program::run(command, |line| {
        if let Ok(Line::Progress(step)) = serde_json::from_str(line) {
            progress(step);
        }
    })?;
    clean(pool)?;
    match outcome {
        Ok(()) => Ok(None),
        Err(message) => refused(&format!("could not be read: {message}")),
    }
}

/// Keeps an object in quarantine too. It stays where it is until there is another, so that there
/// is always one.
fn quarantine(pool: &Pool, path: &str) -> Result<(), Error> {
    let store = pool.objects_dir();
    let (object, dir) = (store.join(path), store.join(QUARANTINE));
    let Some(found) =
        unless_gone(fs::symlink_metadata(&object)).map_err(Error::io("look at", &object))?
    else {
        return Ok(());
    };
    match fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("make the directory", &dir)(error));
        }
        _ => {}
    }
    if found.is_dir() {
        let to = directory::unused(&dir, &path.replace('/', ""))?;
        return fs::rename(&object, &to).map_err(Error::io("rename", &object));
    }
    link(&object, &dir.join(path.replace('/', "")), found.ino())
}

fn link(object: &Path, to: &Path, inode: u64) -> Result<(), Error> {
    match fs::symlink_metadata(to) {
        // A check that was killed has put it there, or it was damaged before, in the same place.
        Ok(there) if there.ino() == inode => return Ok(()),
        Ok(_) => fs::remove_file(to).map_err(Error::io("remove", to))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("look at", to)(error)),
    }
    fs::hard_link(object, to).map_err(Error::io("link", object))
}
