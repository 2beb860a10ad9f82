//! Loading and listing bases.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::error::Error;
use super::meta::{self, BaseMeta};
use super::objects;
use super::staging::clean;
use crate::config::nearest;
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
}

/// Loads the base `name`.
pub fn load(pool: &Pool, name: &Name) -> Result<Base, Error> {
    let dir = pool.base_dir(name);
    let path = dir.join("base.toml");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
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
    if !image.exists() {
        return Err(Error::Damaged { name: name.clone(), missing: "image" });
    }
    Ok(Base { name: name.clone(), image, meta })
}

/// All bases except damaged ones, sorted by name, with the current `own_bytes`. Cleans up after
/// killed imports.
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
    own_bytes(pool, &mut bases)?;
    Ok(bases)
}

/// Sets `own_bytes` of each base. `bases` must be all that exist.
fn own_bytes(pool: &Pool, bases: &mut [Base]) -> Result<(), Error> {
    let mut lists = Vec::with_capacity(bases.len());
    let mut users: HashMap<String, u32> = HashMap::new();
    for base in &*bases {
        let list = objects::read(&pool.base_dir(&base.name).join("objects"))?;
        for object in &list {
            *users.entry(object.path.clone()).or_default() += 1;
        }
        lists.push(list);
    }
    for (base, list) in bases.iter_mut().zip(lists) {
        base.meta.own_bytes = list.iter().filter(|o| users[&o.path] == 1).map(|o| o.size).sum();
    }
    Ok(())
}

/// An error for each damaged base.
pub fn damaged(pool: &Pool) -> Result<Vec<Error>, Error> {
    let errors = pool.bases()?.into_iter().filter_map(|name| load(pool, &name).err());
    Ok(errors.filter(|e| !matches!(e, Error::NotFound { .. })).collect())
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
