//! A Holm root for one test, and the cleaning up of the host after it.

use crate::command::{self, Outcome};
use crate::host::{self, Snapshot};
use crate::options::Options;
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time limit of a command, and of everything that a test waits for, on real hardware. Things
/// usually take a fraction of a second; the limit is generous because a busy host must not fail a
/// test.
const LIMIT: Duration = Duration::from_mins(2);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Files that a test keeps beside its root.
const BESIDE: [&str; 3] = ["strace", "importer", "dhcp"];

/// Panic payload of a test that finds out while it runs that it cannot run here.
#[derive(Debug)]
pub struct Skip(pub String);

/// Ends the test as ignored, because of `reason`.
pub fn skip(reason: &str) -> ! {
    std::panic::resume_unwind(Box::new(Skip(reason.to_owned())))
}

#[derive(Debug)]
pub struct Sandbox {
    pub options: Arc<Options>,
    root: PathBuf,
}

impl Sandbox {
    /// A new root with the shared `bases`.
    pub fn new(options: &Arc<Options>, bases: &[&str]) -> Result<Self, String> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = options.scratch.join(format!("root-{}-{number}", std::process::id()));
        let fail = |error: std::io::Error| format!("{}: {error}", root.display());
        // What makes it a root, in which a test may then keep files of its own.
        std::fs::create_dir_all(root.join("bases")).map_err(fail)?;
        std::fs::set_permissions(&root, Permissions::from_mode(0o700)).map_err(fail)?;
        if !bases.is_empty() {
            symlink(options.fixtures.join("objects"), root.join("objects")).map_err(fail)?;
        }
        let sandbox = Self { options: Arc::clone(options), root };
        for base in bases {
            sandbox.share(base, base).map_err(|error| format!("{base}: {error}"))?;
        }
        Ok(sandbox)
    }

    /// Makes the shared base `base` appear in the root as `name`.
    pub fn share(&self, base: &str, name: &str) -> std::io::Result<()> {
        let shared = self.options.fixtures.join("bases").join(base);
        symlink(shared, self.root.join("bases").join(name))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A `holm` command for this root, to add to.
    pub fn command(&self) -> Command {
        self.command_of(&self.options.holm)
    }

    /// The same with the `holm` that has the feature `fault-injection`; `variable` selects the
    /// fault.
    pub fn command_with_fault(&self, variable: &str, value: &str) -> Command {
        let mut command = self.command_of(&self.options.faulty);
        command.env(variable, value);
        command
    }

    fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOLM_ROOT", &self.root).env("HOLM_IMPORT", &self.options.import);
        command
    }

    /// Runs `holm ARGS...`.
    pub fn holm(&self, args: &[&str]) -> Outcome {
        self.run(self.command().args(args))
    }

    /// Runs `command` within the usual time.
    pub fn run(&self, command: &mut Command) -> Outcome {
        command::run(command, b"", self.limit())
    }

    /// How long a test waits for something that has to happen.
    pub fn limit(&self) -> Duration {
        LIMIT * self.options.patience()
    }

    /// Waits until `done` gives something; panics with `what` after the usual time.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut done: impl FnMut() -> Option<T>) -> T {
        let found = self.poll_until_limit(&mut done);
        found.unwrap_or_else(|| panic!("{what}: not so after {:?}", self.limit()))
    }

    /// The same for callers with a better message: `None` after the usual time.
    pub fn poll_until_limit<T>(&self, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        let begin = Instant::now();
        loop {
            let found = done();
            if found.is_some() || begin.elapsed() > self.limit() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A directory that holds `holm-probe`, to bind into guests.
    pub fn probe_directory(&self) -> PathBuf {
        let directory = self.root.join("probe");
        std::fs::create_dir_all(&directory).expect("a directory for the probe");
        let beside = std::env::current_exe().expect("own path").with_file_name("holm-probe");
        std::fs::copy(&beside, directory.join("holm-probe"))
            .unwrap_or_else(|error| panic!("{}: {error}: build holm-probe too", beside.display()));
        directory
    }

    /// The instance number that the host gave this root, once a command has used it; the root keeps
    /// it when /run is wiped. None after `holm release`: the number may be another test's by then.
    pub fn instance(&self) -> Option<u32> {
        let taken = host::instances();
        let link = taken.iter().find(|(_, root)| *root == self.root).map(|(number, _)| *number);
        let kept = || {
            let text = std::fs::read_to_string(self.root.join("instance")).ok()?;
            let number = text.trim().parse().ok()?;
            taken.iter().all(|(other, _)| *other != number).then_some(number)
        };
        link.or_else(kept)
    }

    /// A file of the test's own that the root must not have in it; removed with the root.
    pub fn beside(&self, kind: &str) -> PathBuf {
        debug_assert!(BESIDE.contains(&kind), "{kind}");
        self.root.with_extension(kind)
    }

    /// Removes everything that belongs to this root; an error lists what the test should have
    /// removed. Of a test that has failed nothing is expected, nor waited for.
    pub fn clean_up(self, has_failed: bool) -> Result<(), String> {
        let instance = self.instance();
        let mut left = Vec::new();
        self.poll_until_limit(|| {
            left = self.host_resources(instance);
            (has_failed || left.is_empty()).then_some(())
        });
        // Some tests make further roots in their own.
        let inner = host::instances().into_iter().filter(|(_, root)| root.starts_with(&self.root));
        let mut numbers: BTreeSet<u32> = inner.map(|(number, _)| number).collect();
        if !has_failed && numbers.iter().any(|number| Some(*number) != instance) {
            left.push(format!("instances {numbers:?}, of roots in {}", self.root.display()));
        }
        numbers.extend(instance);
        // Each once: then another test may have the number.
        numbers.into_iter().for_each(remove_instance);
        for kind in BESIDE {
            let _ = std::fs::remove_file(self.beside(kind));
            let _ = std::fs::remove_dir_all(self.beside(kind));
        }
        let kept = remove_tree(&self.root);
        match (left.is_empty(), kept) {
            (true, kept) => kept,
            (false, _) => Err(format!("left on the host:\n  {}", left.join("\n  "))),
        }
    }

    /// What this root has on the host beyond its own files and its number.
    pub fn host_resources(&self, instance: Option<u32>) -> Vec<String> {
        let mut left = Snapshot::take().of(&self.root, instance);
        left.retain(|item| !item.starts_with("file /run/holm/"));
        left.retain(|item| !instance.is_some_and(|number| host::is_permanent(item, number)));
        left
    }
}

/// Kills and removes what instance `number` still has on the host.
fn remove_instance(number: u32) {
    let group = format!("holm-{number}");
    // Listed again each time: a running guest may make more meanwhile.
    let groups = || -> Vec<PathBuf> {
        let mut groups = host::cgroups();
        groups.retain(|path| path.components().any(|part| part.as_os_str() == &*group));
        groups
    };
    let begin = Instant::now();
    loop {
        let left = groups();
        if left.is_empty() || begin.elapsed() > LIMIT {
            break;
        }
        for path in &left {
            let _ = std::fs::write(path.join("cgroup.kill"), "1");
        }
        for path in &left {
            let _ = std::fs::remove_dir(path); // deepest first; busy ones until their last process is reaped
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for entry in std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if ["h", "lan"].iter().any(|kind| name.starts_with(&format!("{kind}{number}-"))) {
            let _ = Command::new("ip").arg("link").arg("delete").arg(entry.file_name()).output();
        }
    }
    let addresses = format!("fd00:686f:6c6d:{number:x}:ffff::/80");
    let _ =
        Command::new("ip").args(["-6", "address", "flush", "dev", "lo", "to", &addresses]).output();
    let _ = Command::new("nft").args(["delete", "table", "inet", &group]).output();
    let _ = remove_tree(Path::new(&format!("/run/holm/{number}")));
    let _ = std::fs::remove_file(format!("/run/holm/instances/{number}"));
}

/// Unmounts what is mounted below `dir`, then removes `dir`, never crossing into another
/// filesystem.
fn remove_tree(dir: &Path) -> Result<(), String> {
    let text =
        std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let below = |point: &&str| Path::new(point).starts_with(dir);
    let mut points: Vec<&str> =
        text.lines().filter_map(|line| line.split(' ').nth(4)).filter(below).collect();
    points.reverse(); // the last mounted first
    for point in points {
        let _ = Command::new("umount").arg("--").arg(point).output();
    }
    let output = Command::new("rm").args(["-rf", "--one-file-system", "--"]).arg(dir).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("rm: {error}")),
    }
}
