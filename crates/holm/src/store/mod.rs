//! Bases and the objects they share.
//!
//! A base is a folder `bases/NAME`: `image`, an EROFS image in the composefs layout that holds all
//! metadata, `objects`, the list of the file bodies it refers to, and `base.toml`. The bodies are
//! files `objects/ab/cdef...`, named by their fs-verity SHA-256 digest and shared by all bases.

mod gc;
mod import;
mod meta;
mod remove;
mod source;
mod stage;
mod users;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use gc::{Body, parse_bodies};
pub use import::{ImportOptions, Phase, Progress, import};
pub use meta::BaseMeta;
pub use remove::{Hold, hold, hold_all, remove};
pub use source::Source;
pub use stage::{Stage, clean};

use crate::Failed;
use crate::config::nearest;
use crate::pool::{Name, Pool};

/// A base that is there, whole.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its name.
    pub name: Name,
    /// The EROFS image with all metadata; its file bodies are in [`Pool::objects_dir`].
    pub image: PathBuf,
    /// What `base.toml` says.
    pub meta: BaseMeta,
}

/// What can go wrong with a base.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such base.
    #[error("no base named {name}: `holm base ls` shows those there are{near}")]
    NotFound {
        /// The name asked for.
        name: Name,
        /// A base with a similar name, as a clause, or nothing.
        near: String,
    },
    /// The name is taken.
    #[error(
        "a base named {name} exists already: choose another name, or remove it with `holm base rm {name}`"
    )]
    Exists {
        /// The name asked for.
        name: Name,
    },
    /// A guest needs the base.
    #[error("base {name} is used by {users}: {remedy} first")]
    InUse {
        /// The base.
        name: Name,
        /// The guests, as a list in words.
        users: String,
        /// What to do with them, "remove it".
        remedy: String,
    },
    /// The word after `import NAME` is not a source.
    #[error("`{text}` is no source of a base: {reason}")]
    Source {
        /// What was given.
        text: String,
        /// Why it is none.
        reason: String,
    },
    /// A part of the base is not there.
    #[error(
        "base {name} is damaged: it has no {missing}; remove it with `holm base rm {name}` and import it again"
    )]
    Damaged {
        /// The base.
        name: Name,
        /// What is not there.
        missing: &'static str,
    },
    /// base.toml cannot be read.
    #[error(
        "base {name} is damaged: {} is not a base's description; \
         remove it with `holm base rm {name}` and import it again",
        path.display()
    )]
    Meta {
        /// The base.
        name: Name,
        /// The file.
        path: PathBuf,
        /// What the parser says.
        source: Box<toml::de::Error>,
    },
    /// A list of objects that is damaged.
    #[error("{}, line {line}: not a digest and a size; the base is damaged, import it again", path.display())]
    Bodies {
        /// The list.
        path: PathBuf,
        /// Counted from one.
        line: usize,
    },
    /// The program that writes bases is not installed.
    #[error("the program holm-import is neither beside {} nor in ../libexec/holm: install it there, or name it in HOLM_IMPORT", exe.display())]
    NoProgram {
        /// The running program.
        exe: PathBuf,
    },
    /// The program that writes bases failed; these are its words.
    #[error("import of base {name}: {message}")]
    Import {
        /// The base.
        name: Name,
        /// What holm-import says.
        message: String,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(Failed),
    /// The control groups, which tell what runs, cannot be read.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The pool cannot be used.
    #[error(transparent)]
    Pool(#[from] crate::pool::Error),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Failed(Failed::new(what, path, source))
    }
}

fn bases_dir(pool: &Pool) -> PathBuf {
    pool.root().join("bases")
}

/// The base named `name`.
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

/// All bases that are whole, sorted by name, with `own_bytes` as it is now; repairs what a killed
/// import left.
pub fn list(pool: &Pool) -> Result<Vec<Base>, Error> {
    clean(pool)?;
    let names = pool.bases()?;
    let mut bases = Vec::with_capacity(names.len());
    for name in &names {
        match load(pool, name) {
            Ok(base) => bases.push(base),
            // Removed since the folder was read; damaged ones are told of by `damaged`.
            Err(Error::NotFound { .. } | Error::Damaged { .. } | Error::Meta { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    gc::own_bytes(pool, &mut bases)?;
    Ok(bases)
}

/// What is wrong with those bases that are not whole.
pub fn damaged(pool: &Pool) -> Result<Vec<Error>, Error> {
    let looked = pool.bases()?.into_iter().filter_map(|name| load(pool, &name).err());
    Ok(looked.filter(|e| !matches!(e, Error::NotFound { .. })).collect())
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
