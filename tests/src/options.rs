//! The command line: options of our own; all others go to the test harness.

use libtest_mimic::Arguments;
use std::path::{Path, PathBuf};

pub const USAGE: &str = "\
usage: holm-tests [--lane host|vm] [--holm FILE] [--faulty FILE] [--import FILE] [--scratch DIR] [--fixtures DIR] [--prepare]
                  [--slow] [--leave-out TEXT] [--repeat N] [FILTER] [the options of every Rust test program]
  --lane      where this runs: host (default), or vm, which is slow and has only what it was given
  --holm      the holm command to test (target/x86_64-unknown-linux-musl/release/holm)
  --faulty    the same built with --features fault-injection, for tests that need faults (holm beside this program)
  --import    the holm-import program (target/release/holm-import)
  --scratch   a directory on a real disk for Holm roots (target/test)
  --fixtures  the Holm root with the shared bases (SCRATCH/fixtures)
  --prepare   only make the shared bases that the vm lane needs
  --slow      run also what takes minutes in this lane
  --leave-out skip tests with TEXT in their names, and count them; may be given several times
  --repeat    run each test N times";

/// Where the tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// On this machine's own kernel.
    Host,
    /// In an emulated machine: about seventy times slower, no network, bases handed in.
    Vm,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub lane: Lane,
    pub holm: PathBuf,
    pub faulty: PathBuf,
    pub import: PathBuf,
    pub scratch: PathBuf,
    pub fixtures: PathBuf,
    pub prepare: bool,
    pub slow: bool,
    pub leave_out: Vec<String>,
    pub repeat: usize,
}

impl Options {
    /// Splits `args` (program name first) into our options and those of the harness.
    pub fn from_args(args: Vec<String>) -> Result<(Self, Arguments), String> {
        let mut lane = Lane::Host;
        let mut holm = PathBuf::from("target/x86_64-unknown-linux-musl/release/holm");
        let beside = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let mut faulty = beside.with_file_name("holm");
        let mut import = PathBuf::from("target/release/holm-import");
        let mut scratch = PathBuf::from("target/test");
        let mut fixtures = None;
        let mut prepare = false;
        let mut slow = false;
        let mut leave_out = Vec::new();
        let mut repeat = 1;
        let mut rest = Vec::new();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value"));
            match arg.as_str() {
                "--lane" => {
                    lane = match value()?.as_str() {
                        "host" => Lane::Host,
                        "vm" => Lane::Vm,
                        other => return Err(format!("--lane {other}: host or vm")),
                    }
                }
                "--holm" => holm = value()?.into(),
                "--faulty" => faulty = value()?.into(),
                "--import" => import = value()?.into(),
                "--scratch" => scratch = value()?.into(),
                "--fixtures" => fixtures = Some(PathBuf::from(value()?)),
                "--prepare" => prepare = true,
                "--slow" => slow = true,
                "--leave-out" => leave_out.push(value()?),
                "--repeat" => {
                    let count = value()?;
                    repeat = count.parse().map_err(|_| format!("--repeat {count}: a number"))?;
                }
                _ => rest.push(arg),
            }
        }
        let scratch = absolute(&scratch)?;
        let options = Self {
            lane,
            holm: absolute(&holm)?,
            faulty: absolute(&faulty)?,
            import: absolute(&import)?,
            fixtures: fixtures
                .map_or_else(|| Ok(scratch.join("fixtures")), |dir| absolute(&dir))?,
            scratch,
            prepare,
            slow,
            leave_out,
            repeat,
        };
        for program in [&options.holm, &options.faulty] {
            if !program.is_file() {
                return Err(format!(
                    "{} is not there: `make test-host` builds it",
                    program.display()
                ));
            }
        }
        Ok((options, Arguments::from_iter(rest)))
    }

    /// By how much time limits are longer here than on real hardware.
    pub fn patience(&self) -> u32 {
        match self.lane {
            Lane::Host => 1,
            Lane::Vm => 10,
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
