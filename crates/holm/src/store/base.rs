//! Loading and listing bases.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use super::clean::clean;
use super::damage;
use super::error::Error;
use super::meta::{self, BaseMeta};
use super::objects;
use crate::config::nearest;
use crate::failed::{in_one_line, is_directory, is_there};
use crate::pool::{Name, Pool};

/// A base.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its name.
    pub name: Name,
    /// The EROFS image with all metadata; its file bodies are in [`Pool::objects_dir`].
    pub image: PathBuf,
    /// Its base.toml.
    pub meta: BaseMeta,
    /// What is wrong with it, with the remedy; only [`list`] looks.
    pub damage: Option<String>,
}

impl Base {
    /// What tells it from another base that had or gets its name.
    pub fn identity(&self) -> String {
        format!("{} {}", self.name, self.meta.created)
    }
}

/// The bytes of those of these objects that the base does not have: what a guest is charged that
/// stands on it, for they were its own files.
pub fn beyond(base: &Base, objects: &BTreeMap<String, u64>) -> Result<u64, Error> {
    let list = base.image.with_file_name("objects");
    let below: HashSet<String> = objects::read(&list)?.into_iter().map(|it| it.path).collect();
    Ok(objects.iter().filter(|(path, _)| !below.contains(*path)).map(|(_, size)| size).sum())
}

/// Loads the base `name`.
pub fn load(pool: &Pool, name: &Name) -> Result<Base, Error> {
    let dir = pool.base_dir(name);
    let path = dir.join("base.toml");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound && is_directory(&dir)? => {
            return Err(Error::Damaged { name: name.clone(), missing: "base.toml" });
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(not_found(pool, name)),
        Err(e) => return Err(Error::io("read", &path)(e)),
    };
    let meta = meta::parse(&text).map_err(|e| Error::Meta {
        name: name.clone(),
        path,
        source: Box::new(e),
    })?;
    let image = dir.join("image");
    if !is_there(&image)? {
        return Err(Error::Damaged { name: name.clone(), missing: "image" });
    }
    Ok(Base { name: name.clone(), image, meta, damage: None })
}

/// All bases that can be loaded, sorted by name, with the current `own_bytes` and what is wrong
/// with them. Cleans up after killed imports.
pub fn list(pool: &Pool) -> Result<Vec<Base>, Error> {
    clean(pool)?;
    let names = pool.bases()?;
    let mut bases = Vec::with_capacity(names.len());
    for name in &names {
        match load(pool, name) {
            Ok(base) => bases.push(base),
            // Removed since the directory was read, or damaged: `damaged` lists those.
            Err(Error::NotFound { .. } | Error::Damaged { .. } | Error::Meta { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    look_at(pool, &mut bases)?;
    Ok(bases)
}

/// Sets `own_bytes` and `damage` of each base. `bases` must be all that exist.
fn look_at(pool: &Pool, bases: &mut [Base]) -> Result<(), Error> {
    let mut lists = Vec::with_capacity(bases.len());
    // How many bases have an object, and what is wrong with it.
    let mut known: HashMap<String, (u32, Option<String>)> = HashMap::new();
    for base in &mut *bases {
        base.damage = damage::of_image(&base.image)?
            .map(|what| format!("{what}; remove it (holm base rm) and import it again"));
        let list = match objects::read(&pool.base_dir(&base.name).join("objects")) {
            Ok(list) => list,
            Err(error) => {
                base.damage.get_or_insert_with(|| in_one_line(&error));
                Vec::new()
            }
        };
        for object in &list {
            match known.entry(object.path.clone()) {
                Entry::Occupied(mut known) => known.get_mut().0 += 1,
                Entry::Vacant(new) => drop(new.insert((1, damage::of_object(pool, object)?))),
            }
        }
        lists.push(list);
    }
    for (base, list) in bases.iter_mut().zip(lists) {
        base.meta.own_bytes = list.iter().filter(|o| known[&o.path].0 == 1).map(|o| o.size).sum();
        let damaged: Vec<&String> =
            list.iter().filter_map(|object| known[&object.path].1.as_ref()).collect();
        if let [first, others @ ..] = damaged.as_slice()
            && base.damage.is_none()
        {
            let others = match others.len() {
                0 => String::new(),
                n => format!(", and {n} more"),
            };
            let source = &base.meta.source;
            base.damage = Some(format!(
                "{first}{others}; import its source ({source}) once more by another name, which \
                 restores the files of both"
            ));
        }
    }
    Ok(())
}

/// Each base that cannot be loaded, with the error.
pub fn damaged(pool: &Pool) -> Result<Vec<(Name, Error)>, Error> {
    let errors = pool.bases()?.into_iter().filter_map(|name| {
        let error = load(pool, &name).err()?;
        Some((name, error))
    });
    Ok(errors.filter(|(_, error)| !matches!(error, Error::NotFound { .. })).collect())
}

fn not_found(pool: &Pool, name: &Name) -> Error {
    let lower = name.as_str().to_lowercase();
    let names = pool.bases().unwrap_or_default();
    let similar = |n: &&Name| {
        let n = n.as_str().to_lowercase();
        n.starts_with(&lower) || lower.starts_with(&n)
    };
    let near = names.iter().find(similar).map(Name::as_str);
    let near = near.or_else(|| nearest(&lower, names.iter().map(Name::as_str)));
    let near = near.map_or(String::new(), |n| format!(" (did you mean {n}?)"));
    Error::NotFound { name: name.clone(), near }
}
