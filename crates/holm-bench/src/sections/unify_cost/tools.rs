//! The programs that find equal files, and a tree for each of their runs.

use std::fs;
use std::path::Path;

use crate::cost::{Cost, timed};
use crate::rounds::Case;
use crate::stage::Stage;

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
