//! The programs that find equal files, and a tree for each of their runs.

use std::fs;
use std::path::Path;

use super::Cost;
use crate::rounds::Case;
use crate::stage::Stage;

pub struct Tool {
    pub name: &'static str,
    argv: &'static [&'static str],
    /// Whether it shares extents, and so needs btrfs.
    reflinks: bool,
}

pub const TOOLS: [Tool; 4] = [
    Tool { name: "duperemove", argv: &["duperemove", "-drq"], reflinks: true },
    Tool {
        name: "rdfind",
        argv: &["rdfind", "-makehardlinks", "true", "-outputname", "/dev/null"],
        reflinks: false,
    },
    Tool { name: "hardlink", argv: &["hardlink", "-q"], reflinks: false },
    Tool { name: "jdupes", argv: &["jdupes", "-rLq"], reflinks: false },
];

/// The size of the btrfs, in bytes: sparse.
const BTRFS_SIZE: u64 = 8 << 30;

/// A copy of the guests' files; removed at the end.
pub struct Copy {
    pub tree: String,
    /// The mounted btrfs that it is on, and its image.
    btrfs: Option<(String, String)>,
}

impl Copy {
    pub fn new(stage: &Stage, tool: &Tool, directories: &[String]) -> Result<Self, String> {
        let mut copy = Self { tree: stage.path("unify-tree"), btrfs: None };
        let fail = |e: std::io::Error| format!("unify-tree: {e}");
        if tool.reflinks {
            let (mount, image) = (stage.path("unify-btrfs"), stage.path("unify-btrfs.img"));
            fs::create_dir_all(&mount).map_err(fail)?;
            fs::File::create(&image).and_then(|file| file.set_len(BTRFS_SIZE)).map_err(fail)?;
            Case::new("mkfs", ["mkfs.btrfs", "-q", "-f", &image]).output()?;
            Case::new("mount", ["mount", "-o", "loop", &image, &mount]).output()?;
            copy.tree = format!("{mount}/tree");
            copy.btrfs = Some((mount, image));
        }
        fs::create_dir_all(&copy.tree).map_err(fail)?;
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
        let Some((mount, image)) = &self.btrfs else {
            let _ = fs::remove_dir_all(&self.tree);
            return;
        };
        let _ = Case::new("umount", ["umount", mount]).output();
        let _ = fs::remove_file(image);
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
    Ok(Cost { seconds, cpu_seconds: user + system, peak_kib, saved: free(place)? - before })
}

/// Bytes that are free, once all is written.
fn free(place: &Path) -> Result<f64, String> {
    Case::new("sync", ["sync", "-f", &place.to_string_lossy()]).output()?;
    let place = place.to_string_lossy();
    let text = Case::new("df", ["df", "--output=avail", "--block-size=1", &place]).output()?;
    let bytes = text.split_whitespace().last().and_then(|bytes| bytes.parse().ok());
    bytes.ok_or(format!("df: {text}"))
}
