//! The arguments that `holm` passes.

use std::ffi::OsString;
use std::path::PathBuf;

use holm::pool::Name;
use holm::store::Source;

use crate::error::{Error, Result};

/// The arguments of this program.
pub struct Args {
    /// The Holm root.
    pub root: PathBuf,
    /// The new base.
    pub name: Name,
    /// The Debian mirror to use instead of the host's own.
    pub mirror: Option<String>,
    /// The source of the base.
    pub source: Source,
}

/// Parses arguments, without the program's name.
pub fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Args> {
    let (mut root, mut name, mut mirror) = (None, None, None);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(Error::Usage("a value is missing"));
        match arg.to_str() {
            Some("--root") => root = Some(value()?.into()),
            Some("--name") => name = Some(value()?),
            Some("--mirror") => mirror = Some(value()?.to_string_lossy().into_owned()),
            Some("--") => {
                let source = Source::parse(&value()?)?;
                let root = root.ok_or(Error::Usage("no root"))?;
                let name = name.ok_or(Error::Usage("no name"))?;
                return Ok(Args {
                    root,
                    name: Name::new(&name.to_string_lossy()).map_err(holm::pool::Error::from)?,
                    mirror,
                    source,
                });
            }
            _ => return Err(Error::Usage("unknown option")),
        }
    }
    Err(Error::Usage("no source"))
}
