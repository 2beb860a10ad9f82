//! Running holm-import, the program that writes bases.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, thread};

use serde::{Deserialize, Serialize};

use super::base::{Base, load};
use super::error::Error;
use super::gc;
use super::source::Source;
use super::staging::clean;
use crate::pool::{Name, Pool};

/// The options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// URL of the mirror that `debootstrap:` uses instead of the host's own.
    pub mirror: Option<String>,
}

/// A phase of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Packages are fetched and installed; `done` counts steps.
    Install,
    /// Files are read and stored; `done` counts bytes.
    Read,
    /// The stored files are synced to disk.
    Sync,
}

/// The progress of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What is being worked on, for people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Imports the base `name` from `source`. Calls `progress` a few times a second.
///
/// The base becomes visible when all of it is on disk.
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
    let message = outcome.map_err(Error::io("read the output of", &program))?;
    if status.success() {
        return load(pool, name);
    }
    // It may have stored objects before it failed, which a killed import does not remove.
    gc::request(pool)?;
    clean(pool)?;
    let message =
        if message.is_empty() { format!("holm-import failed: {status}") } else { message };
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

/// Reports progress until the child closes its output. Returns what it wrote to stderr.
fn watch(child: &mut Child, progress: &mut dyn FnMut(Progress)) -> io::Result<String> {
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Ok(String::new());
    };
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| text)
    });
    for line in BufReader::new(stdout).lines() {
        if let Ok(step) = serde_json::from_str(&line?) {
            progress(step);
        }
    }
    let errors = errors.join().map_err(|_| io::Error::other("reading its errors failed"))??;
    Ok(String::from_utf8_lossy(&errors).trim().to_owned())
}

/// The path of holm-import: from the environment, beside the running program, in its libexec
/// directory, or in the build tree that both are from.
fn program() -> Result<PathBuf, Error> {
    if let Some(path) = env::var_os("HOLM_IMPORT") {
        return Ok(path.into());
    }
    let exe = env::current_exe().map_err(Error::io("find", Path::new("/proc/self/exe")))?;
    let dir = exe.parent().unwrap_or(Path::new("/"));
    // In a build tree holm is in target/MACHINE/PROFILE.
    let tree = exe.ancestors().nth(3).filter(|tree| tree.ends_with("target"));
    let installed = ["holm-import", "../libexec/holm/holm-import"].map(|place| dir.join(place));
    installed
        .into_iter()
        .chain(tree.map(|tree| tree.join("release/holm-import")))
        .find(|path| path.is_file())
        .ok_or(Error::NoProgram { exe })
}
