//! Checking everything.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use super::check::{What, check};
use super::found::{Damage, Fsck, FsckOptions, Problem, Subject};
use super::repair::repair;
use crate::failed::{in_one_line, is_there, unless_gone};
use crate::pool::Pool;
use crate::store::base::damaged;
use crate::store::clean::clean;
use crate::store::error::Error;
use crate::store::import::Progress;
use crate::store::{directory, objects};

/// The mode of an object. What a guest sees is in the image.
const MODE: u32 = 0o444;

/// Checks all bases, images and objects. Calls `progress` a few times a second.
pub fn fsck(
    pool: &Pool,
    options: &FsckOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fsck, Error> {
    if let Some(source) = &options.from {
        source.check_as_backup()?;
    }
    clean(pool)?;
    let lock = directory::share_objects(pool)?;
    let (looked, found) = check(pool, What::Everything, progress)?;
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
