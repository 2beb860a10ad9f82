//! Running holm-import, the program that writes bases.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use super::base::{Base, load};
use super::error::Error;
use super::source::Source;
use super::staging::clean;
use super::{directory, gc};
use crate::failed::is_there;
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

/// What is worth a word about an import that has succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// Damaged objects that it has replaced.
    pub restored_objects: u64,
    /// Device nodes of the source that are not in the base.
    pub left_out_devices: u64,
}

/// A line of holm-import's output.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Progress(Progress),
    Remarks(Remarks),
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
) -> Result<(Base, Remarks), Error> {
    source.check()?;
    clean(pool)?;
    if is_there(&pool.base_dir(name))? {
        return Err(Error::Exists { name: name.clone() });
    }
    let program = program()?;
    // holm-import locks them so itself, but would wait for a collection without end.
    let objects = directory::share_objects(pool)?;
    // In memory, so that nobody has to read it while the progress is read.
    let errors = memfd_create("errors", MemfdFlags::CLOEXEC).map(File::from);
    let errors = errors.map_err(|errno| Error::io("make a file for", &program)(errno.into()))?;
    let stderr = errors.try_clone().map_err(Error::io("start", &program))?;
    let mut child = command(&program, pool, name, source, options)
        .stderr(stderr)
        .spawn()
        .map_err(Error::io("start", &program))?;
    let outcome = watch(&mut child, errors, progress);
    let status = child.wait().map_err(Error::io("wait for", &program))?;
    let (message, remarks) = outcome.map_err(Error::io("read the output of", &program))?;
    drop(objects);
    if status.success() {
        return Ok((load(pool, name)?, remarks));
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
    command.stdin(stdin).stdout(Stdio::piped());
    command
}

/// Reports progress until the child closes its output. Returns what it wrote to stderr, and its
/// remarks.
fn watch(
    child: &mut Child,
    mut errors: File,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<(String, Remarks)> {
    let mut remarks = Remarks::default();
    let stdout = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    for line in stdout {
        let line = line?;
        match serde_json::from_str(&line) {
            Ok(Line::Progress(step)) => progress(step),
            Ok(Line::Remarks(made)) => remarks = made,
            Err(_) => {}
        }
    }
    // Its output ends with it, but what it said counts only then.
    child.wait()?;
    let mut said = Vec::new();
    errors.rewind()?;
    errors.read_to_end(&mut said)?;
    Ok((String::from_utf8_lossy(&said).trim().to_owned(), remarks))
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
