//! What a guest takes on disk when it is created, and when it has been started once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::sections::guests::Sleepers;
use crate::stage::Stage;

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    let mut sleepers = Sleepers::new(stage);
    let names = sleepers.create_up_to(1)?;
    let folder = stage.dir.join("holm/guests").join(&names[0]);
    let created = allocated(&folder);
    sleepers.start(&names)?;
    let started = allocated(&folder);
    Ok(format!(
        "Blocks allocated below the guest's folder: {created} KiB when created, {started} KiB when started.\n"
    ))
}

/// KiB allocated to a folder and all in it.
fn allocated(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    let mut kib = meta.blocks() / 2;
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            kib += allocated(&entry.path());
        }
    }
    kib
}
