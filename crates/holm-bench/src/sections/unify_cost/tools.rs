//! The programs that find equal files, and a tree for each of their runs.

use std::fs;
use std::path::Path;

use crate::free::free;
use crate::rounds::Case;
use crate::stage::Stage;

/// What one run of a program took.
pub struct Cost {
    pub seconds: f64,
    /// In user mode and in the kernel, of all its threads.
    pub cpu_seconds: f64,
    /// The largest resident set, in KiB.
    pub peak_kib: f64,
    /// What the disk has to spare since, in bytes.
    pub saved: f64,
}

pub struct Tool {
    pub name: &'static str,
    argv: &'static [&'static str],
}

pub const TOOLS: [Tool; 4] = [
    Tool { name: "duperemove", argv: &["duperemove", "-drq"] },
    Tool {
        name: "rdfind",
        argv: &["rdfind", "-makehardlinks", "true", "-outputname", "/dev/null"],
    },
    Tool { name: "hardlink", argv: &["hardlink", "-q"] },
    Tool { name: "jdupes", argv: &["jdupes", "-rLq"] },
];

/// A copy of the guests' files; removed at the end.
pub struct Copy {
    pub tree: String,
}

impl Copy {
    pub fn new(stage: &Stage, directories: &[String]) -> Result<Self, String> {
        let copy = Self { tree: stage.path("unify-tree") };
        fs::create_dir_all(&copy.tree).map_err(|e| format!("{}: {e}", copy.tree))?;
        for (number, directory) in directories.iter().enumerate() {
            let to = format!("{}/{number}", copy.tree);
            Case::new("cp", ["cp", "-a", "--reflink=never", directory, &to]).output()?;
        }
        Ok(copy)
    }

    pub fn deduplicate(&self, tool: &Tool) -> Result<Cost, String> {
        let mut command: Vec<String> = tool.argv.iter().map(|&arg| arg.to_owned()).collect();
        command.push(self.tree.clone());
        timed(&command, Path::new(&self.tree))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.tree);
    }
}

/// Runs a command that saves room on the filesystem of `place`.
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
