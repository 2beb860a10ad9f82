//! Storing damaged objects once more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use super::check::{What, check};
use super::found::{FsckOptions, Line, Subject};
use crate::failed::{is_there, unless_gone};
use crate::pool::{Name, Pool};
use crate::step;
use crate::store::base::load;
use crate::store::clean::clean;
use crate::store::error::Error;
use crate::store::import::Progress;
use crate::store::source::Source;
use crate::store::{directory, gc, program};

/// Where damaged objects are kept, below `objects`.
const QUARANTINE: &str = ".quarantine";

/// Keeps damaged objects aside, and stores them again from the sources of the bases that have them.
/// Returns those that are left, with the reason; nobody can read them any more.
pub(super) fn repair(
    pool: &Pool,
    bad: &BTreeMap<String, String>,
    users: &BTreeMap<String, Vec<Subject>>,
    options: &FsckOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<BTreeMap<String, String>, Error> {
    for path in bad.keys() {
        quarantine(pool, path)?;
    }
    step::done("fsck-quarantined");
    let mut left: BTreeMap<String, String> =
        bad.keys().map(|path| (path.clone(), "no base with a source has it".to_owned())).collect();
    if let Some(source) = &options.from {
        let outcome = store(pool, source, options, progress)?;
        let still = still_bad(pool, left.keys(), progress)?;
        left.retain(|path, _| still.contains(path));
        for why in left.values_mut() {
            *why = match &outcome {
                Some(message) => format!("{source} could not be read: {message}"),
                None => format!("neither {source} nor a base with a source has it"),
            };
        }
    }
    let bases: BTreeSet<&Subject> =
        bad.keys().filter_map(|path| users.get(path)).flatten().collect();
    for base in bases {
        let Subject::Base(name) = base else { continue };
        let of_it = |path: &String| users.get(path).is_some_and(|users| users.contains(base));
        if !left.keys().any(of_it) {
            continue;
        }
        let name = Name::new(name).map_err(crate::pool::Error::from)?;
        let outcome = restore(pool, &name, options, progress)?;
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
    let (_, found) = check(pool, What::Objects(&paths), progress)?;
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
    options: &FsckOptions,
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
    Ok(store(pool, &source, options, progress)?.map(|message| {
        format!("the source of base {}, {text}, could not be read: {message}", base.name)
    }))
}

/// Has all bodies of a source stored that the store does not have; why that was not possible.
fn store(
    pool: &Pool,
    source: &Source,
    options: &FsckOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<String>, Error> {
    let mut command = program::command(pool)?;
    command.arg("--restore");
    if let Some(mirror) = &options.mirror {
        command.arg("--mirror").arg(mirror);
    }
    command.arg("--").arg(source.to_arg());
    let outcome = program::run(command, |line| {
        if let Ok(Line::Progress(step)) = serde_json::from_str(line) {
            progress(step);
        }
    })?;
    clean(pool)?;
    Ok(outcome.err())
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
