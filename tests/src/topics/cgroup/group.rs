//! A cgroup for one test, and worker processes in a guest's cgroups.

use holm::cgroup::{Controller, GuestCgroup, Layout, Limits, PoolCgroup};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time limit, also on an emulated machine.
pub const SOON: Duration = Duration::from_mins(1);
/// Guest root on the host.
pub const OWNER: (u32, u32) = (400_000, 500_000);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Removed with everything in it when dropped.
pub struct Group {
    pub cgroup: PoolCgroup,
    pub name: String,
}

impl Group {
    pub fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("holm-test-{}-{number}", std::process::id());
        Self { cgroup: PoolCgroup::new(Layout::probe().unwrap(), name.clone()), name }
    }

    pub fn create(&self, limits: &Limits) -> GuestCgroup {
        self.try_create(limits).unwrap_or_else(|error| panic!("{limits:?}: {error}"))
    }

    pub fn try_create(&self, limits: &Limits) -> holm::cgroup::Result<GuestCgroup> {
        GuestCgroup::create(&self.cgroup, "g", limits, OWNER)
    }

    /// A path below the group on v2.
    pub fn v2(&self, path: &str) -> PathBuf {
        self.cgroup.layout().v2_root().join(&self.name).join(path)
    }

    /// A file of the guest in the hierarchy that has `controller`: by its name on v2 or on v1.
    pub fn read(&self, controller: Controller, v2: &str, v1: &str) -> String {
        let root = self
            .cgroup
            .layout()
            .hierarchy_of(controller)
            .expect("the hierarchies")
            .expect("a controller that every kernel here has");
        let file =
            if self.cgroup.layout().is_pure_v2().expect("the hierarchies") { v2 } else { v1 };
        let path = root.join(&self.name).join("g").join(file);
        let text = fs::read_to_string(&path);
        text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim().to_owned()
    }

    /// Where the guest has a cgroup on v1.
    pub fn v1_dirs(&self) -> Vec<PathBuf> {
        let roots = Controller::ALL.into_iter().filter_map(|controller| {
            self.cgroup.layout().hierarchy_of(controller).expect("the hierarchies")
        });
        let dirs = roots.filter(|root| *root != self.cgroup.layout().v2_root());
        dirs.map(|root| root.join(&self.name).join("g")).filter(|dir| dir.exists()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for name in self.cgroup.guests().unwrap_or_default() {
            if let Ok(Some(cgroup)) = GuestCgroup::open(&self.cgroup, &name) {
                let _ = cgroup.kill();
                let _ = cgroup.wait_empty(SOON);
                if let Err(error) = cgroup.remove() {
                    eprintln!("{error}");
                }
            }
        }
        let _ = fs::remove_dir(self.v2(".monitor"));
        let _ = fs::remove_dir(self.v2(""));
        for controller in Controller::ALL {
            if let Ok(Some(root)) = self.cgroup.layout().hierarchy_of(controller) {
                let _ = fs::remove_dir(root.join(&self.name));
            }
        }
    }
}

/// A shell inside a guest's cgroups, which it enters as init does: by itself, first of all.
pub struct Worker {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    pub fn start(cgroup: &GuestCgroup, script: &str) -> Self {
        let me = std::process::id();
        let tasks =
            cgroup.v1_tasks().iter().map(|file| format!("/proc/{me}/fd/{}", file.as_raw_fd()));
        let guest = format!("/proc/{me}/fd/{}/cgroup.procs", cgroup.guest_fd().as_raw_fd());
        let enter = tasks.chain([guest]).map(|file| format!("echo 0 >{file} || exit"));
        let enter = enter.collect::<Vec<_>>().join("\n");
        let mut child = Command::new("bash")
            .args(["-c", &format!("{enter}\necho inside\n{script}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut worker = Self { child, stdout };
        assert_eq!(worker.line(), "inside");
        worker
    }

    /// The next line that it prints; "" at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lets a script that waits in `read` go on.
    pub fn resume(&mut self) {
        use std::io::Write;
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Its line in /proc/PID/status.
    pub fn status(&self, key: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `so`; panics with `what` after the time limit.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
