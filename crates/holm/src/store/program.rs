//! Running holm-import, the program that reads and writes images.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::error::Error;
use crate::pool::Pool;

/// The program, about to work on a Holm root.
pub(super) fn command(pool: &Pool) -> Result<Command, Error> {
    let mut command = Command::new(program()?);
    command.arg("--root").arg(pool.root()).stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

/// Runs the program, and calls `each` with every line of its output. If it fails, returns what it
/// said.
pub(super) fn run(
    mut command: Command,
    each: impl FnMut(&str),
) -> Result<Result<(), String>, Error> {
    let program = PathBuf::from(command.get_program());
    // In memory, so that nobody has to read it while the progress is read.
    let errors = memfd_create("errors", MemfdFlags::CLOEXEC).map(File::from);
    let errors = errors.map_err(|errno| Error::io("make a file for", &program)(errno.into()))?;
    let stderr = errors.try_clone().map_err(Error::io("start", &program))?;
    let mut child = command.stderr(stderr).spawn().map_err(Error::io("start", &program))?;
    let outcome = watch(&mut child, errors, each);
    let status = child.wait().map_err(Error::io("wait for", &program))?;
    let message = outcome.map_err(Error::io("read the output of", &program))?;
    Ok(match message {
        _ if status.success() => Ok(()),
        message if message.is_empty() => Err(format!("holm-import failed: {status}")),
        message => Err(message),
    })
}

/// Passes lines on until the child closes its output. Returns what it wrote to stderr.
fn watch(child: &mut Child, mut errors: File, mut each: impl FnMut(&str)) -> io::Result<String> {
    let stdout = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    for line in stdout {
        each(&line?);
    }
    // Its output ends with it, but what it said counts only then.
    child.wait()?;
    let mut said = Vec::new();
    errors.rewind()?;
    errors.read_to_end(&mut said)?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
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
