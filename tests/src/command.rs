//! Runs a command with a time limit and keeps its outcome in a form that a failing test can print.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How often a running command is looked at.
const STEP: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub struct Outcome {
    /// The command line, for messages.
    pub line: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// Runs `command` with `input` on its standard input; kills it, and panics, after `limit`.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Outcome {
    Running::new(command, input).finish(limit)
}

/// A command that runs.
pub struct Running {
    child: Child,
    line: String,
    begin: Instant,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Running {
    /// Runs `command` with `input` on its standard input.
    pub fn new(command: &mut Command, input: &[u8]) -> Self {
        let line = describe(command);
        let begin = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        // A command that ends without reading gives a broken pipe, which says nothing about it.
        let _ = child.stdin.take().expect("piped").write_all(input);
        Self { child, line, begin, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }

    /// Waits for its end; kills it, and panics, `limit` after its begin.
    pub fn finish(mut self, limit: Duration) -> Outcome {
        let status = wait(&mut self.child, &self.line, self.begin + limit);
        let took = self.begin.elapsed();
        let read = |receiver: &Receiver<Vec<u8>>, which: &str| {
            let left = limit.saturating_sub(self.begin.elapsed()).max(Duration::from_secs(2));
            let bytes = receiver.recv_timeout(left).unwrap_or_else(|_| {
                let line = &self.line;
                panic!("{line}: ended, but something it left running still holds its {which}");
            });
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (stdout, stderr) = (read(&self.stdout, "stdout"), read(&self.stderr, "stderr"));
        Outcome { status, stdout, stderr, took, line: self.line }
    }
}

/// The output of a successful command on a terminal.
pub fn on_a_terminal(command: &mut Command) -> String {
    let (master, slave) = crate::terminal::open();
    let mut child = command.stdout(slave).spawn().expect("our own program");
    // The command keeps a copy of the terminal until it is given another.
    command.stdout(Stdio::null());
    let mut bytes = Vec::new();
    // Ends in EIO once everything was read.
    let _ = std::fs::File::from(master).read_to_end(&mut bytes);
    assert!(child.wait().expect("our own child").success(), "{}", describe(command));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn describe(command: &Command) -> String {
    let arguments = std::iter::once(command.get_program()).chain(command.get_args());
    arguments.map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

fn wait(child: &mut Child, line: &str, deadline: Instant) -> ExitStatus {
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{line}: not done in time, killed");
        }
        std::thread::sleep(STEP);
    }
}

impl Outcome {
    /// The exit status as a shell would say it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Panics unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{self}");
        self
    }

    /// Panics unless Holm itself refused (status 125) and its message contains all of `parts`.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Self {
        assert_eq!(self.code(), 125, "a refusal has status 125\n{self}");
        for part in parts {
            assert!(self.stderr.contains(part), "the message does not say \"{part}\"\n{self}");
        }
        self
    }

    /// Panics unless the command line was wrong (status 2) or Holm refused (125), with every one of
    /// `parts` in the message.
    #[track_caller]
    pub fn rejected(self, parts: &[&str]) -> Self {
        if self.code() == 125 {
            return self.refused(parts);
        }
        assert_eq!(self.code(), 2, "{self}");
        for part in parts {
            assert!(self.stderr.contains(part), "the message does not say \"{part}\"\n{self}");
        }
        self
    }

    /// Its standard output contains this.
    #[track_caller]
    pub fn has(&self, part: &str) -> &Self {
        assert!(self.stdout.contains(part), "no {part:?} in its output\n{self}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}\n{self}"))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "$ {}\nstatus {} after {:?}", self.line, self.code(), self.took)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: u64) -> Outcome {
        run(Command::new("sh").args(["-c", script]), b"in", Duration::from_millis(limit))
    }

    #[test]
    fn keeps_both_outputs_and_the_status() {
        let outcome = shell("cat; echo err >&2; exit 125", 5000).refused(&["err"]);
        assert_eq!(outcome.stdout, "in");
        assert_eq!(shell("kill -9 $$", 5000).code(), 137);
    }

    #[test]
    #[should_panic(expected = "not done in time")]
    fn ends_what_takes_too_long() {
        shell("exec sleep 5", 50);
    }

    #[test]
    #[should_panic(expected = "still holds its stdout")]
    fn notices_what_was_left_running() {
        shell("sleep 4 2>/dev/null &", 50);
    }
}
