//! What a command costs that works on many files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::free::free;
use crate::meminfo::drop_caches;
use crate::rounds::Case;

pub const MIB: f64 = (1 << 20) as f64;

/// What one run of a command took.
pub struct Cost {
    pub seconds: f64,
    /// In user mode and in the kernel, of all its threads.
    pub cpu_seconds: f64,
    /// The largest resident set, in KiB.
    pub peak_kib: f64,
    /// What the disk has to spare since, in bytes.
    pub saved: f64,
}

/// How much there is in some directories.
#[derive(Default)]
pub struct Tree {
    pub files: f64,
    pub bytes: f64,
}

impl Tree {
    pub fn of(directories: &[String]) -> Result<Self, String> {
        let mut find = vec!["find".to_owned()];
        find.extend_from_slice(directories);
        find.extend(["-type", "f", "-printf", "%s\\n"].map(str::to_owned));
        let sizes = Case::new("find", find).output()?;
        let sizes: Vec<f64> = sizes.lines().filter_map(|size| size.parse().ok()).collect();
        #[expect(clippy::cast_precision_loss, reason = "some hundred thousand files")]
        Ok(Self { files: sizes.len() as f64, bytes: sizes.iter().sum() })
    }
}

/// Runs a command that saves room on the filesystem of `place`, or takes it.
pub fn timed(command: &[String], place: &Path) -> Result<Cost, String> {
    let before = free(place)?;
    let report = place.join(".time");
    let report = report.to_string_lossy();
    let mut line =
        ["/usr/bin/time", "-o", &report, "-f", "%e %U %S %M"].map(str::to_owned).to_vec();
    line.extend_from_slice(command);
    Case::new("time", line).output()?;
    let text = fs::read_to_string(&*report).map_err(|e| format!("{report}: {e}"))?;
    let _ = fs::remove_file(&*report);
    let figures: Vec<f64> =
        text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    let [seconds, user, system, peak_kib] = figures[..] else {
        return Err(format!("time: {text}"));
    };
    #[expect(clippy::cast_precision_loss, reason = "a few GiB")]
    let saved = free(place)? as f64 - before as f64;
    Ok(Cost { seconds, cpu_seconds: user + system, peak_kib, saved })
}

/// Empties the caches, or fills them with what is below the directories.
pub fn prepare_caches(cold: bool, directories: &[String]) -> Result<(), String> {
    drop_caches()?;
    if cold {
        return Ok(());
    }
    let mut command = Command::new("find");
    command.args(directories).args(["-type", "f", "-exec", "cat", "{}", "+"]);
    let status = command.stdout(Stdio::null()).status().map_err(|e| format!("find: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("find: {status}")) }
}
