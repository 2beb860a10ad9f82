//! The root filesystem in which files are measured: a Debian with programs that use many files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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

/// In a mount namespace of its own: a root with the devices that programs cannot do without.
const CHROOT: &str = "\
set -e; root=$1; shift; mount -t tmpfs -o mode=755 dev \"$root/dev\"; \
for node in null zero full random urandom; do \
: >\"$root/dev/$node\"; mount --bind \"/dev/$node\" \"$root/dev/$node\"; done; \
mkdir -m 1777 \"$root/dev/shm\"; mount -t proc proc \"$root/proc\"; exec chroot \"$root\" \"$@\"";

/// Makes the directory `programs`, copies of it for the host and for peers, and the base of that
/// name.
pub fn make(stage: &Stage) -> Result<(), String> {
    let ops = stage.compile("ops", include_str!("../../../ops.c"))?;
    stage.bootstrap("programs", PACKAGES, |root| {
        install(root, OPS, &fs::read(&ops).map_err(|e| format!("{ops}: {e}"))?)?;
        install(root, PROGRAMS, include_bytes!("../../../programs.sh"))?;
        let prepare = chroot(root, &[PROGRAMS, "prepare"]);
        Case::new("prepare", prepare).output().map(drop)
    })?;
    stage.shifted("programs")?;
    stage.copied("programs", ON_HOST, |_| Ok(()))?;
    stage.base("programs")
}

/// A command line that runs a program in a directory of the host.
pub fn chroot(root: &Path, command: &[&str]) -> Vec<String> {
    let root = root.to_string_lossy();
    let head = ["unshare", "-m", "sh", "-c", CHROOT, "sh", &root];
    head.iter().chain(command).map(|&arg| arg.to_owned()).collect()
}

fn install(root: &Path, path: &str, content: &[u8]) -> Result<(), String> {
    let file = root.join(path.trim_start_matches('/'));
    fs::write(&file, content)
        .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", file.display()))
}
