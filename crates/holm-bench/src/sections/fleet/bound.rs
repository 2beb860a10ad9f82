//! A bound on the memory of all guests together, as on a smaller host: what is the guests' own, the
//! cache of their files, and what the kernel keeps for them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sections::guests::init;

/// On a hybrid host only guests with a limit of their own are in the hierarchy of the memory
/// controller. This one is more than any has.
pub const SETTINGS: [&str; 2] = ["--set", "memory.limit=2G"];

/// Taken away at the end, whatever happens.
pub struct Bound {
    file: PathBuf,
    before: String,
}

impl Bound {
    /// Bounds all guests of the Holm root in which `guest` runs to so many MiB.
    pub fn set(guest: &str, mib: u64) -> Result<Self, String> {
        let read =
            |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
        let cgroups = read(Path::new(&format!("/proc/{}/cgroup", init(guest)?)))?;
        let (mount, path, name) = of_memory(&cgroups).ok_or("no cgroup of memory")?;
        let own = format!("/{guest}");
        let (pool, _) = path.split_once(&own).ok_or(format!("{path} is not below {own}"))?;
        let file = PathBuf::from(format!("{mount}{pool}/{name}"));
        let before = read(&file)?;
        let bound = Self { file, before };
        bound.write(&(mib << 20).to_string())?;
        Ok(bound)
    }

    fn write(&self, value: &str) -> Result<(), String> {
        fs::write(&self.file, value).map_err(|e| format!("{}: {e}", self.file.display()))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Err(problem) = self.write(&self.before) {
            eprintln!("holm-bench: {problem}");
        }
    }
}

/// Where the hierarchy with the memory controller is, a process's path in it, and its limit's file.
fn of_memory(cgroups: &str) -> Option<(&'static str, &str, &'static str)> {
    if let Some((_, path)) = cgroups.lines().find_map(|line| line.split_once(":memory:")) {
        return Some(("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(("/sys/fs/cgroup", path, "memory.max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_hosts() {
        let v1 = of_memory("3:memory:/holm-1/box/guest\n0::/holm-1/box/guest\n");
        let file = "memory.limit_in_bytes";
        assert_eq!(v1, Some(("/sys/fs/cgroup/memory", "/holm-1/box/guest", file)));
        let v2 = of_memory("0::/holm-1/box/guest\n");
        assert_eq!(v2, Some(("/sys/fs/cgroup", "/holm-1/box/guest", "memory.max")));
    }
}
