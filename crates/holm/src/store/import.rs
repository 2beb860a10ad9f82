//! Running holm-import, the program that makes bases.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, thread};

use serde::{Deserialize, Serialize};

use super::base::{Base, load};
use super::error::Error;
use super::gc;
use super::source::Source;
use super::stage::clean;
use crate::pool::{Name, Pool};

/// What an import can be told beside its source.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The mirror that `debootstrap:` uses instead of the host's own, a URL.
    pub mirror: Option<String>,
}

/// A part of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Packages are fetched and installed; `done` counts steps.
    Install,
    /// Files are read and stored; bytes.
    Read,
    /// What was stored is brought to the disk.
    Sync,
}

/// How far an import is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How much of it is done.
    pub done: u64,
    /// Of how much, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What is being worked on, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Makes the base `name` from `source`; `progress` hears how far it is, a few times a second.
///
/// Nothing of the base is visible until all of it is on the disk.
pub fn import(
    pool: &Pool,
    name: &Name,
    source: &Source,
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Base, Error> {
    clean(pool)?;
    if pool.base_dir(name).exists() {
        return Err(Error::Exists { name: name.clone() });
    }
    let program = program()?;
    let mut child = command(&program, pool, name, source, options)
        .spawn()
        .map_err(Error::io("start", &program))?;
    let outcome = watch(&mut child, progress);
    let status = child.wait().map_err(Error::io("wait for", &program))?;
    let said = outcome.map_err(Error::io("listen to", &program))?;
    if status.success() {
        return load(pool, name);
    }
    // It may have stored objects before it failed. Killed, it could not clean up at all.
    gc::want(pool)?;
    clean(pool)?;
    let message = if said.is_empty() { format!("holm-import ended by {status}") } else { said };
    Err(Error::Import { name: name.clone(), message })
}

fn command(
    program: &Path,
    pool: &Pool,
    name: &Name,
    source: &Source,
    options: &ImportOptions,
) -> Command {
    let mut command = Command::new(program);
    command.arg("--root").arg(pool.root()).arg("--name").arg(name.as_str());
    if let Some(mirror) = &options.mirror {
        command.arg("--mirror").arg(mirror);
    }
    command.arg("--").arg(source.to_arg());
    let stdin = if *source == Source::Stdin { Stdio::inherit() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Passes progress on until the child closes its output; returns what it said on stderr.
fn watch(child: &mut Child, progress: &mut dyn FnMut(Progress)) -> io::Result<String> {
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Ok(String::new());
    };
    let words = thread::spawn(move || {
        let mut words = Vec::new();
        stderr.read_to_end(&mut words).map(|_| words)
    });
    for line in BufReader::new(stdout).lines() {
        if let Ok(step) = serde_json::from_str(&line?) {
            progress(step);
        }
    }
    let words = words.join().map_err(|_| io::Error::other("reading its errors failed"))??;
    Ok(String::from_utf8_lossy(&words).trim().to_owned())
}

/// holm-import: as the environment names it, beside the running program, or in its libexec folder.
fn program() -> Result<PathBuf, Error> {
    if let Some(path) = env::var_os("HOLM_IMPORT") {
        return Ok(path.into());
    }
    let exe = env::current_exe().map_err(Error::io("find", Path::new("/proc/self/exe")))?;
    let dir = exe.parent().unwrap_or(Path::new("/"));
    ["holm-import", "../libexec/holm/holm-import"]
        .iter()
        .map(|place| dir.join(place))
        .find(|path| path.is_file())
        .ok_or(Error::NoProgram { exe })
}
