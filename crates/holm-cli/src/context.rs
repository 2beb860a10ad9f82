//! What holds for a whole call of `holm`.

use std::path::PathBuf;

use holm::pool::{self, Name, Pool};

use crate::failure::Failure;
use crate::term;

/// The global options.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Four switches that have nothing to do with each other.
pub struct Context {
    /// `--root`.
    pub root: Option<PathBuf>,
    /// `--json`.
    pub json: bool,
    /// `--quiet`.
    pub quiet: bool,
    /// Colours on standard output.
    pub colour: bool,
    /// The columns of the terminal that standard output is, if it is one.
    pub width: Option<usize>,
    /// Colours on standard error.
    pub colour_errors: bool,
}

impl Context {
    /// The Holm root's directory.
    pub fn root(&self) -> PathBuf {
        self.root
            .clone()
            .or_else(|| std::env::var_os("HOLM_ROOT").filter(|r| !r.is_empty()).map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(pool::DEFAULT_ROOT))
    }

    /// Opens the root. What a command repairs there on its way is printed on standard error.
    pub fn pool(&self) -> Result<Pool, Failure> {
        let pool = Pool::open(&self.root()).map_err(|error| {
            let failure = Failure::from(error);
            if rustix::process::geteuid().is_root() {
                return failure;
            }
            failure.help("run holm as root (sudo holm ...)")
        })?;
        Ok(pool.on_repair(|sentence| term::print_error(&format!("holm: {sentence}\n"))))
    }
}

/// A guest that exists.
pub fn guest(pool: &Pool, name: &str) -> Result<Name, Failure> {
    let name = Name::new(name)?;
    if pool.guest_dir(&name).is_dir() {
        return Ok(name);
    }
    Err(pool::Error::NoGuest { name, known: pool.guests().unwrap_or_default() }.into())
}
