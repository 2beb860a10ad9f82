//! Programs that are called for their output.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// Runs a program, and returns its standard output. Unlike [`Command::output`], it does not panic
/// if a read fails.
pub(super) fn output(name: &'static str, command: &mut Command) -> Result<String> {
    let path = Path::new(command.get_program()).to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(Error::io("start", &path))?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
    let status = child.wait().map_err(Error::io("wait for", &path))?;
    read.map_err(Error::io("read the output of", &path))?;
    if !status.success() {
        return Err(Error::Tool { program: name, message: status.to_string() });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_counts() {
        let shell = |script: &str| output("sh", Command::new("sh").args(["-c", script]));
        assert_eq!(shell("echo out; echo err >&2").unwrap(), "out\n");
        assert_eq!(shell("echo out; exit 3").unwrap_err().to_string(), "sh failed: exit status: 3");
    }
}
