//! The first write to a file that a guest shares with others, by the file's size: in an overlay the
//! kernel copies the whole file first.

use std::fs;
use std::path::{Path, PathBuf};

use super::matrix::{WARM_UP, matrix, measure};
use super::tree;
use crate::rounds::Case;
use crate::sections::guests::Sleepers;
use crate::stage::Stage;

/// Files of each size, and no more rounds: a file can be written to for the first time once.
const ROUNDS: usize = 10;
const SIZES: [(&str, usize); 5] = [
    ("4 KiB", 4 << 10),
    ("64 KiB", 64 << 10),
    ("1 MiB", 1 << 20),
    ("16 MiB", 16 << 20),
    ("64 MiB", 64 << 20),
];
/// The ways to get a copy of one's own that can be written to.
const WAYS: [&str; 4] =
    ["overlay of Holm", "copy on the host", "reflink on the host", "snapshot of btrfs"];

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let files = files(stage)?;
    let holm = &stage.holms[0];
    let mut sleepers = Sleepers::new(holm);
    let settings = ["--base", "copy-up", "--set", "net.mode=none", "--set", "init=minimal"];
    let guests = sleepers.create_more(1, &settings)?;
    sleepers.start(&guests)?;
    let mut rounds = [0; WAYS.len()];
    let columns = measure(WAYS, n.min(ROUNDS), |way| {
        let round = rounds[way];
        rounds[way] += 1;
        match way {
            0 => each(|size| {
                let file = format!("/data/{size}-{round}");
                Case::new("", holm.argv(&["exec", &guests[0], "--", tree::OPS, "--write", &file]))
            }),
            1 => copies(stage, &files, "--copy-and-write", round),
            2 => copies(stage, &files, "--clone-and-write", round),
            _ => in_snapshot(stage, &files),
        }
    });
    Ok(format!(
        "Milliseconds of the overlay's, from open until one byte was written, and the others' ratios \
         to it in the\nsame round (median, p10 to p90); the source was in the page cache; on {}. A \
         copy on the host is not\nsynced, the kernel syncs an overlay's.\n\n{}",
        stage.filesystem(),
        matrix(&columns, WAYS[0])
    ))
}

/// A line for each size, of what a command prints. What was written before is on the disk by then:
/// each pays for its own writes.
fn each(command: impl Fn(usize) -> Case) -> Result<String, String> {
    let line = |(name, size): (&str, usize)| {
        let case = command(size);
        Case::new("sync", ["sync"]).output()?;
        Ok(format!("{name}\t{}\n", case.output()?.trim()))
    };
    SIZES.into_iter().map(line).collect()
}

fn copies(stage: &Stage, files: &Path, how: &str, round: usize) -> Result<String, String> {
    let (ops, new) = (stage.path("ops"), stage.path("copy-up-new"));
    let lines = each(|size| {
        let _ = fs::remove_file(&new);
        let file = files.join(format!("{size}-{round}"));
        Case::new("", [&ops, how, &file.to_string_lossy(), &new])
    });
    let _ = fs::remove_file(&new);
    lines
}

fn in_snapshot(stage: &Stage, files: &Path) -> Result<String, String> {
    let (volume, snapshot) = (stage.path("copy-up-volume"), stage.path("copy-up-snapshot"));
    if !Path::new(&volume).exists() {
        btrfs(&["subvolume", "create", &volume])?;
        for (_, size) in SIZES {
            let name = format!("{size}-0");
            let to = Path::new(&volume).join(&name);
            fs::copy(files.join(&name), &to).map_err(|e| format!("{}: {e}", to.display()))?;
        }
    }
    btrfs(&["subvolume", "snapshot", &volume, &snapshot])?;
    let ops = stage.path("ops");
    let lines = each(|size| Case::new("", [&ops, "--write", &format!("{snapshot}/{size}-0")]));
    btrfs(&["subvolume", "delete", &snapshot])?;
    lines
}

fn btrfs(args: &[&str]) -> Result<(), String> {
    Case::new("btrfs", [&["btrfs"], args].concat()).output().map(drop)
}

/// The files, on the host, in the directory that becomes the base: all of one size have the same
/// content, which is one object.
fn files(stage: &Stage) -> Result<PathBuf, String> {
    let ops = stage.compile("ops", include_str!("../../../ops.c"))?;
    let count = ROUNDS + WARM_UP;
    stage.copied("minimal", "copy-up", |root| {
        fs::create_dir_all(root.join("data"))?;
        fs::create_dir_all(root.join("usr/bin"))?;
        fs::copy(&ops, root.join(tree::OPS.trim_start_matches('/')))?;
        for (_, size) in SIZES {
            for round in 0..count {
                fs::write(root.join(format!("data/{size}-{round}")), vec![b'x'; size])?;
            }
        }
        Ok(())
    })?;
    stage.base("copy-up")?;
    Ok(stage.dir.join("copy-up/data"))
}
