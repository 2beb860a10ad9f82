//! The root filesystem in which files are measured: a Debian with programs that use many files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::places;
use crate::rounds::Case;
use crate::stage::Stage;

/// The programs, by their paths in the root.
pub const OPS: &str = "/usr/bin/bench-ops";
pub const PROGRAMS: &str = "/usr/bin/bench-programs";
/// The directory that they work in.
pub const BENCH: &str = "/bench";

const PACKAGES: &str = "git,gcc,libc6-dev,make,dbench,postgresql";

/// The copy of the directory that the host's rows are measured in.
pub const ON_HOST: &str = "programs-host";

/// Makes the directory `programs`, copies of it for the host and for peers, and the base of that
/// name.
pub fn make(stage: &Stage) -> Result<(), String> {
    let ops = stage.compile("ops", include_str!("../../../ops.c"))?;
    stage.bootstrap("programs", PACKAGES, |root| {
        install(root, OPS, &fs::read(&ops).map_err(|e| format!("{ops}: {e}"))?)?;
        install(root, PROGRAMS, include_bytes!("../../../programs.sh"))?;
        let prepare = places::chroot(root, &[PROGRAMS, "prepare"]);
        Case::new("prepare", prepare).output().map(drop)
    })?;
    stage.shifted("programs")?;
    stage.copied("programs", ON_HOST, |_| Ok(()))?;
    stage.base("programs")
}

fn install(root: &Path, path: &str, content: &[u8]) -> Result<(), String> {
    let file = root.join(path.trim_start_matches('/'));
    fs::write(&file, content)
        .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", file.display()))
}
