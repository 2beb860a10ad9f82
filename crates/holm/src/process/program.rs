//! Programs that Holm calls for their output.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How a program ended, and what it printed.
#[derive(Debug)]
pub struct Called {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output or its standard error, whichever was asked for.
    pub printed: String,
}

/// Runs a program, and returns its standard output.
pub fn call_for_output(command: &mut Command) -> io::Result<Called> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = child.stdout.take();
    called(&mut child, stdout)
}

/// Runs a program with an input, and returns its standard error.
pub fn call_for_errors(command: &mut Command, input: &str) -> io::Result<Called> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    let written = stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let stderr = child.stderr.take();
    let called = called(&mut child, stderr)?;
    // If it ended early, the reason is on its standard error; else it has done a part only.
    if called.status.success() {
        written?;
    }
    Ok(called)
}

/// Reads one pipe to its end, unlike [`Command::output`], which panics if the read fails.
fn called(child: &mut Child, pipe: Option<impl Read>) -> io::Result<Called> {
    let mut bytes = Vec::new();
    let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes));
    // The pipe is closed by now, so a program that goes on printing ends.
    let status = child.wait()?;
    read?;
    Ok(Called { status, printed: String::from_utf8_lossy(&bytes).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_told_apart() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; echo out; echo err >&2; exit 3"]);
        let called = call_for_output(&mut shell).unwrap();
        assert_eq!((called.status.code(), &*called.printed), (Some(3), "out\n"));
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat >&2; echo out; echo err >&2"]);
        let called = call_for_errors(&mut shell, "in\n").unwrap();
        assert_eq!((called.status.code(), &*called.printed), (Some(0), "in\nerr\n"));
    }

    #[test]
    fn input_that_was_not_read_is_an_error_unless_there_is_another() {
        let input = "x".repeat(1 << 20);
        let called = |script| call_for_errors(Command::new("sh").args(["-c", script]), &input);
        let error = called("exec <&-").map(|called| called.status).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let failed = called("exec <&-; echo why >&2; exit 3").unwrap();
        assert_eq!((failed.status.code(), &*failed.printed), (Some(3), "why\n"));
    }

    #[test]
    fn a_failed_read_is_an_error() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(12))
            }
        }
        let mut child = Command::new("true").spawn().unwrap();
        let error = called(&mut child, Some(Fails)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(12));
    }
}
