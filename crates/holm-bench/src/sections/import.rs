//! What an import costs, beside a copy of the same files.

use std::fs;
use std::path::Path;

use super::roots::tree;
use crate::build::{Build, Holm};
use crate::cost::{Cost, MIB, Tree, prepare_caches, timed};
use crate::rounds::Case;
use crate::stage::Stage;
use crate::stats::Summary;

/// A round reads and writes all files several times.
const ROUNDS: usize = 5;
/// What the next release changes: directories of the first, a line added to each file.
const CHANGED: [&str; 2] = ["usr/include", "usr/share/perl"];
const ROWS: [&str; 4] =
    ["cp -a, sync", "holm base import", "the next release", "the same once more"];

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    tree::make(stage)?;
    next_release(stage)?;
    let (first, next) = (stage.path("programs"), stage.path("programs-next"));
    let changed = CHANGED.map(|path| format!("{next}/{path}"));
    let (all, part) = (Tree::of(std::slice::from_ref(&first))?, Tree::of(&changed)?);
    let rounds = n.min(ROUNDS);
    let mut text = format!(
        "A Debian of {:.0} files, {:.0} MiB, on {}; the next release has another content in {:.0} \
         files of\n{:.0} MiB, and is imported into the same store, as the first is under another \
         name. A copy does not hash what\nit copies. {rounds} rounds; medians (p10 to p90).\n",
        all.files,
        all.bytes / MIB,
        stage.filesystem(),
        part.files,
        part.bytes / MIB
    );
    let imports = Imports::new(stage)?;
    for cold in [true, false] {
        let mut costs: [Vec<Cost>; ROWS.len()] = Default::default();
        for _ in 0..rounds {
            let [copied, imported, upgraded, again] = &mut costs;
            prepare_caches(cold, std::slice::from_ref(&first))?;
            copied.push(copy(stage, &first)?);
            for (name, source, costs) in
                [("first", &first, imported), ("next", &next, upgraded), ("again", &first, again)]
            {
                prepare_caches(cold, std::slice::from_ref(source))?;
                costs.push(imports.import(name, source)?);
            }
            imports.clear()?;
        }
        let caches = if cold { "Caches dropped before" } else { "All in the page cache" };
        text +=
            &format!("\n{caches}:\n\n| | seconds | MiB/s | CPU seconds | peak MiB | disk MiB |\n");
        text += "|---|---:|---:|---:|---:|---:|\n";
        for (name, costs) in ROWS.iter().zip(&costs) {
            text += &row(name, costs, &all);
        }
    }
    Ok(text)
}

/// Makes it of the first, in a directory of the stage, once.
fn next_release(stage: &Stage) -> Result<(), String> {
    stage.copied("programs", "programs-next", |root| {
        let paths = CHANGED.map(|path| root.join(path).to_string_lossy().into_owned());
        let append = "for file; do echo upgraded >>\"$file\"; done";
        let mut find = vec!["find".to_owned()];
        find.extend(paths);
        find.extend(
            ["-type", "f", "-exec", "sh", "-c", append, "sh", "{}", "+"].map(str::to_owned),
        );
        Case::new("find", find).output().map(drop).map_err(std::io::Error::other)
    })
}

fn row(name: &str, costs: &[Cost], tree: &Tree) -> String {
    let all = |of: fn(&Cost) -> f64| Summary::of(&costs.iter().map(of).collect::<Vec<f64>>());
    let seconds = all(|cost| cost.seconds);
    format!(
        "| {name} | {} | {:.0} | {} | {:.0} | {:.1} |\n",
        seconds.with_spread(),
        tree.bytes / MIB / seconds.median,
        all(|cost| cost.cpu_seconds).with_spread(),
        all(|cost| cost.peak_kib).median / 1024.0,
        -all(|cost| cost.saved).median / MIB
    )
}

fn copy(stage: &Stage, source: &str) -> Result<Cost, String> {
    let to = stage.path("imports-copy");
    let line = "cp -a --reflink=never \"$1\" \"$2\" && sync -f \"$2\"";
    let command = ["sh", "-c", line, "sh", source, &to].map(str::to_owned);
    let cost = timed(&command, &stage.dir);
    fs::remove_dir_all(&to).map_err(|e| format!("{to}: {e}"))?;
    cost
}

/// A Holm root with no other bases, so that its store has nothing of what is imported.
struct Imports<'a> {
    holm: Holm,
    stage: &'a Stage,
}

impl<'a> Imports<'a> {
    fn new(stage: &'a Stage) -> Result<Self, String> {
        let Holm { program, import, .. } = &stage.holms[0];
        let root = stage.dir.join("imports");
        let holm = Holm::new(Path::new(program), import, root, Build::Now)?;
        let imports = Self { holm, stage };
        imports.clear()?;
        Ok(imports)
    }

    fn import(&self, name: &str, source: &str) -> Result<Cost, String> {
        let import = format!("HOLM_IMPORT={}", self.holm.import.display());
        let command = self.holm.argv(&["base", "import", name, source]);
        timed(&[["env".to_owned(), import].to_vec(), command].concat(), &self.stage.dir)
    }

    /// Removes what was imported; the first import makes the root.
    fn clear(&self) -> Result<(), String> {
        if !self.holm.root.exists() {
            return Ok(());
        }
        for name in ["first", "next", "again"] {
            let _ = self.holm.run(&["base", "rm", name]);
        }
        self.holm.run(&["gc"]).map(drop)
    }
}

impl Drop for Imports<'_> {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}
