use std::io;
use std::path::{Path, PathBuf};

use crate::pool::Name;
use crate::{Code, Coded, Details, Failed};

/// An error of an operation on bases.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base does not exist.
    #[error("no base named {name}: `holm base ls` lists those that exist{near}")]
    NotFound {
        /// The name asked for.
        name: Name,
        /// A base with a similar name, as a clause, or nothing.
        near: String,
    },
    /// The name is taken.
    #[error(
        "a base named {name} exists already: choose another name, \
         or remove it with `holm base rm {name}`"
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
        /// The guests, as a list for a sentence.
        users: String,
        /// What to do with them, as a clause: "remove it".
        remedy: String,
    },
    /// The argument after `import NAME` is not a source.
    #[error("`{text}` is not a source of a base: {reason}")]
    Source {
        /// What was given.
        text: String,
        /// Why it is not one.
        reason: String,
    },
    /// A part of the base is missing.
    #[error(
        "base {name} is damaged: it has no {missing}; \
         remove it with `holm base rm {name}` and import it again"
    )]
    Damaged {
        /// The base.
        name: Name,
        /// What is missing.
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
        /// The parser's error.
        source: Box<toml::de::Error>,
    },
    /// A list of objects is damaged.
    #[error(
        "{}, line {line}: not a digest and a size; the base is damaged, import it again",
        path.display()
    )]
    Objects {
        /// The list.
        path: PathBuf,
        /// Counted from one.
        line: usize,
    },
    /// The program that writes bases is not installed.
    #[error(
        "the program holm-import is neither beside {} nor in ../libexec/holm: \
         install it there, or name it in HOLM_IMPORT",
        exe.display()
    )]
    NoProgram {
        /// The running program.
        exe: PathBuf,
    },
    /// The program that writes bases failed.
    #[error("import of base {name}: {message}")]
    Import {
        /// The base.
        name: Name,
        /// The error that it printed.
        message: String,
    },
    /// The program that unifies guests failed.
    #[error("unification of {what}: {message}")]
    Unify {
        /// What was unified.
        what: String,
        /// The error that it printed.
        message: String,
    },
    /// The program that reads objects failed.
    #[error("check of the objects: {message}")]
    Fsck {
        /// The error that it printed.
        message: String,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The cgroups of running guests cannot be read.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The pool cannot be used.
    #[error(transparent)]
    Pool(#[from] crate::pool::Error),
}

impl Error {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Failed(Failed::new(what, path, source))
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::NotFound { name, .. } => {
                Details::new(Code::BaseNotFound).object(name).remedy("holm base ls")
            }
            Self::Exists { name } => Details::new(Code::BaseExists)
                .object(name)
                .remedy(format!("choose another name, or holm base rm {name}")),
            Self::InUse { name, users, remedy } => Details::new(Code::BaseInUse)
                .object(name)
                .reason(format!("used by {users}"))
                .remedy(format!("{remedy} first")),
            Self::Source { text, reason } => {
                Details::new(Code::SourceInvalid).object(text).reason(reason)
            }
            Self::Damaged { name, missing } => {
                damaged(name.as_str()).reason(format!("it has no {missing}"))
            }
            Self::Meta { name, .. } => damaged(name.as_str()),
            Self::Objects { path, line } => {
                damaged(&path.display().to_string()).reason(format!("line {line} is damaged"))
            }
            Self::NoProgram { .. } => Details::new(Code::ImporterMissing)
                .object("holm-import")
                .remedy("install it beside holm or in ../libexec/holm, or name it in HOLM_IMPORT"),
            Self::Import { name, message } => {
                Details::new(Code::ImportFailed).object(name).reason(message)
            }
            Self::Unify { what, message } => {
                Details::new(Code::UnifyFailed).object(what).reason(message)
            }
            Self::Fsck { message } => Details::new(Code::FsckFailed).reason(message),
            Self::Failed(failed) => failed.details(),
            Self::Cgroup(error) => error.details(),
            Self::Pool(error) => error.details(),
        }
    }
}

fn damaged(object: &str) -> Details {
    Details::new(Code::BaseDamaged)
        .object(object)
        .remedy("remove the base (holm base rm) and import it again")
}
