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

    /// Opens the root for a verb that makes something in it, and makes the root if it does not
    /// exist. What a command repairs there in passing is printed on standard error.
    pub fn new_pool(&self) -> Result<Pool, Failure> {
        Ok(reporting(Pool::open(&self.root())?))
    }

    /// Opens the root for a verb that changes what is there.
    pub fn pool(&self) -> Result<Pool, Failure> {
        self.pool_if_any()?.ok_or_else(|| self.no_root())
    }

    /// The same; `None` if nobody has made anything there yet.
    pub fn pool_if_any(&self) -> Result<Option<Pool>, Failure> {
        Ok(Pool::open_existing(&self.root())?.map(reporting))
    }

    /// Opens the root for a verb that only looks, which makes nothing and takes no instance number.
    pub fn look(&self) -> Result<Pool, Failure> {
        self.look_if_any()?.ok_or_else(|| self.no_root())
    }

    /// The same; `None` if nobody has made anything there yet.
    pub fn look_if_any(&self) -> Result<Option<Pool>, Failure> {
        Ok(Pool::look(&self.root())?.map(reporting))
    }

    /// The error where there is nothing yet.
    pub fn no_root(&self) -> Failure {
        pool::Error::NoRoot { root: self.root() }.into()
    }
}

fn reporting(pool: Pool) -> Pool {
    pool.on_repair(|sentence| term::print_error(&format!("holm: {sentence}\n")))
}

/// A guest that exists.
pub fn guest(pool: &Pool, name: &str) -> Result<Name, Failure> {
    let name = Name::new(name)?;
    if pool.guest_dir(&name).try_exists()? {
        return Ok(name);
    }
    Err(pool::Error::NoGuest { name, known: pool.guests().unwrap_or_default() }.into())
}
