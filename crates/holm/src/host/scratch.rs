//! A temporary directory on the Holm root's filesystem, for the probes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failed::is_there;

/// What its name begins with, before the process id: in a Holm root's `tmp/`, of which the next
/// command removes what a killed one has left, or in a directory that is none yet.
const IN_ROOT: &str = "probe-";
const ELSEWHERE: &str = ".holm-doctor-";

/// More than the probes write, in bytes.
const ROOM: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory in `dir`, with room for what the probes write, and removes those of
    /// earlier probes that were killed.
    pub(super) fn new(dir: &Path) -> Result<Self, String> {
        let tmp = dir.join("tmp");
        let is_root = tmp.is_dir() && dir.join("guests").is_dir();
        let (dir, prefix) = if is_root { (&*tmp, IN_ROOT) } else { (dir, ELSEWHERE) };
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name
                .to_str()
                .and_then(|name| name.strip_prefix(prefix))
                .and_then(|pid| pid.parse::<u32>().ok());
            let is_dead = |pid| matches!(is_there(Path::new(&format!("/proc/{pid}"))), Ok(false));
            if pid.is_some_and(is_dead) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = dir.join(format!("{prefix}{}", std::process::id()));
        let fail = |error: std::io::Error| format!("cannot write in {}: {error}", dir.display());
        fs::create_dir(&path).map_err(fail)?;
        let made = Self(path);
        let room = made.0.join("room");
        fs::write(&room, vec![1; ROOM]).and_then(|()| fs::remove_file(&room)).map_err(fail)?;
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A directory of this name in it.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::create_dir_all(&path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is mounted here: the probes mount in namespaces that ended with their process.
        let _ = fs::remove_dir_all(&self.0);
    }
}
