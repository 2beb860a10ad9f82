//! The arguments that `holm` passes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use holm::pool::Name;
use holm::store::{Source, UnifyOptions};

use crate::error::{Error, Result};

/// The arguments of this program.
pub struct Args {
    /// The Holm root.
    pub root: PathBuf,
    /// What to do.
    pub work: Work,
}

/// What this program does.
pub enum Work {
    /// Import a base.
    Import(Import),
    /// Find what private layers have in common, and store it.
    Unify(Vec<Name>, UnifyOptions),
    /// Store the bodies of a source once more, for those that are damaged or missing.
    Restore {
        /// The Debian mirror to use instead of the host's own.
        mirror: Option<String>,
        /// The source of the base that has lost them.
        source: Source,
    },
    /// Compare objects with their names, all or these, and if all, images too.
    Check(Vec<String>),
    /// Give a guest its new layer.
    Switch {
        /// The guest.
        guest: Name,
        /// Its base.
        base: Name,
    },
}

/// An import.
pub struct Import {
    /// The new base.
    pub name: Name,
    /// The Debian mirror to use instead of the host's own.
    pub mirror: Option<String>,
    /// The source of the base.
    pub source: Source,
}

/// What was read so far.
#[derive(Default)]
struct Options {
    root: Option<PathBuf>,
    name: Option<OsString>,
    base: Option<OsString>,
    mirror: Option<String>,
    /// `--unify`, `--switch`, `--check` or `--restore`; an import without any of them.
    verb: Option<OsString>,
    min_size: u64,
    min_age: u64,
    exclude: Vec<String>,
    dry_run: bool,
    nice: bool,
}

/// Parses arguments, without the program's name.
pub fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Args> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(Error::Usage("a value is missing"));
        let text = |value: OsString| value.to_string_lossy().into_owned();
        let number = |value: OsString| {
            value.to_string_lossy().parse().map_err(|_| Error::Usage("not a number"))
        };
        match arg.to_str() {
            Some("--root") => options.root = Some(value()?.into()),
            Some("--name") => options.name = Some(value()?),
            Some("--base") => options.base = Some(value()?),
            Some("--mirror") => options.mirror = Some(text(value()?)),
            Some("--min-size") => options.min_size = number(value()?)?,
            Some("--min-age") => options.min_age = number(value()?)?,
            Some("--exclude") => options.exclude.push(text(value()?)),
            Some("--unify" | "--switch" | "--check" | "--restore") => options.verb = Some(arg),
            Some("--dry-run") => options.dry_run = true,
            Some("--nice") => options.nice = true,
            Some("--") => return options.with(args),
            _ => return Err(Error::Usage("unknown option")),
        }
    }
    Err(Error::Usage("no source"))
}

impl Options {
    fn with(self, mut rest: impl Iterator<Item = OsString>) -> Result<Args> {
        let root = self.root.ok_or(Error::Usage("no root"))?;
        let verb = self.verb.as_ref().and_then(|verb| verb.to_str());
        let mut source = || {
            let source = rest.next().ok_or(Error::Usage("no source"))?;
            Ok::<_, Error>(Source::parse(&source)?)
        };
        let work = match verb {
            None => {
                let source = source()?;
                Work::Import(Import { name: name(self.name)?, mirror: self.mirror, source })
            }
            Some("--restore") => Work::Restore { mirror: self.mirror, source: source()? },
            Some("--check") => {
                Work::Check(rest.map(|path| path.to_string_lossy().into_owned()).collect())
            }
            Some("--switch") => Work::Switch { guest: name(rest.next())?, base: name(self.base)? },
            Some(_) => {
                let options = UnifyOptions {
                    dry_run: self.dry_run,
                    min_size: self.min_size,
                    min_age: Duration::from_secs(self.min_age),
                    exclude: self.exclude,
                    nice: self.nice,
                };
                Work::Unify(rest.map(|guest| name(Some(guest))).collect::<Result<_>>()?, options)
            }
        };
        Ok(Args { root, work })
    }
}

fn name(text: Option<OsString>) -> Result<Name> {
    let text = text.ok_or(Error::Usage("no name"))?;
    Ok(Name::new(&text.to_string_lossy()).map_err(holm::pool::Error::from)?)
}
