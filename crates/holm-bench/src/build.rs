//! A build of holm, and the Holm root that it is measured in.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which build of holm it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The one that is measured.
    Now,
    /// The one that it is compared with.
    Before,
    /// The one that is measured, once more: how far two equal builds are apart in a report.
    Again,
}

impl Build {
    /// What follows the name of a row.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Now => "",
            Self::Before => ", before",
            Self::Again => ", again",
        }
    }
}

/// A build of holm with a Holm root of its own.
pub struct Holm {
    pub build: Build,
    pub program: String,
    pub import: PathBuf,
    pub root: PathBuf,
}

impl Holm {
    pub fn new(program: &Path, import: &Path, root: PathBuf, build: Build) -> Result<Self, String> {
        let absolute = |path: &Path| {
            std::fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))
        };
        // As `make install` copies it. The pages of a file that a linker has just written are small
        // in the page cache, and faults in them cost a twelfth of a start.
        let copy = root.with_extension("program");
        std::fs::copy(program, &copy).map_err(|e| format!("{}: {e}", program.display()))?;
        let program = copy.to_string_lossy().into_owned();
        Ok(Self { build, program, import: absolute(import)?, root })
    }

    /// A command line in the Holm root.
    pub fn argv(&self, args: &[&str]) -> Vec<String> {
        let root = self.root.to_string_lossy();
        let begin = [self.program.as_str(), "--root", &root];
        begin.iter().chain(args).map(|&arg| arg.to_owned()).collect()
    }

    /// Runs holm; standard output, or its error message.
    pub fn run(&self, args: &[&str]) -> Result<String, String> {
        let line = self.argv(args);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env("HOLM_IMPORT", &self.import).stdin(Stdio::null());
        let output = command.output().map_err(|e| format!("{}: {e}", self.program))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("holm {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// A guest's name that no other build uses: guests are found by their cgroups.
    pub fn guest(&self, name: &str) -> String {
        let build = match self.build {
            Build::Now => "",
            Build::Before => "before-",
            Build::Again => "again-",
        };
        format!("bench-{build}{name}")
    }

    /// Imports a directory as a base, once.
    pub fn import(&self, name: &str, directory: &str) -> Result<(), String> {
        if self.run(&["base", "inspect", name]).is_ok() {
            return Ok(());
        }
        self.run(&["base", "import", name, directory]).map(drop)
    }

    pub fn create(&self, name: &str, settings: &[&str]) -> Result<(), String> {
        // Guests without a system would end at once.
        let command: &[&str] = if settings.iter().any(|setting| setting.ends_with("minimal")) {
            &["--", "/bin/sleep", SLEEP]
        } else {
            &[]
        };
        self.run(&[&["create", name][..], settings, command].concat()).map(drop)
    }

    /// Ends and removes guests, whichever of them are there.
    pub fn remove_guests(&self, names: &[String]) {
        for name in names {
            let _ = self.run(&["kill", name]);
            let _ = self.run(&["rm", name]);
        }
    }
}

/// Settings of a minimal guest that sleeps when it is started.
pub const SLEEPER: [&str; 4] = ["--base", "minimal", "--set", "net.mode=none"];

/// How long a sleeping guest sleeps, in seconds.
pub const SLEEP: &str = "1000000";

impl Drop for Holm {
    /// The Holm root stays for the next run; nothing of it stays on the host.
    fn drop(&mut self) {
        if let Err(problem) = self.run(&["release"]) {
            eprintln!("holm-bench: {problem}");
        }
    }
}
