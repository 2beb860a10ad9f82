//! No command waits without end, or without a word, for something that another one has.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::looks::with_fault;
use crate::command::Outcome;
use crate::guest::{IDLE, exec, idle, launch_idle, pid, remove, status};
use crate::process::Stopped;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(a_start_that_hangs_is_ended).bases(&["busybox"]),
    test!(a_start_with_a_dead_source_is_ended).bases(&["busybox"]),
    test!(a_restart_with_a_dead_source_stops_nothing).bases(&["busybox"]),
    test!(a_command_says_which_one_it_waits_for).bases(&["busybox"]),
    test!(a_lock_is_not_waited_for_without_end).bases(&["busybox"]),
    test!(a_process_that_waits_for_its_disk_is_told).bases(&["busybox"]),
    test!(processes_that_cannot_be_moved_are_told).bases(&["busybox"]),
];

/// What a dead network filesystem is to a process: each look into it waits for ever. A FUSE
/// filesystem whose server answers nothing.
struct Dead {
    server: Child,
    at: PathBuf,
}

impl Dead {
    fn new(sandbox: &Sandbox) -> Self {
        let at = sandbox.root().join("dead");
        std::fs::create_dir_all(&at).expect("a directory");
        let script = "exec 3<>/dev/fuse && mount -i -t fuse -o \
                      fd=3,rootmode=40000,user_id=0,group_id=0,allow_other dead \"$0\" && exec sleep 100000";
        let mut server = Command::new("sh");
        let server = server.args(["-c", script]).arg(&at).stderr(Stdio::null());
        let mut server = server.spawn().expect("sh");
        let mounted = sandbox.poll_until_limit(|| {
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            let at = format!(" {} ", at.display());
            let ended = server.try_wait().expect("our child").is_some();
            (ended || mounts.contains(&at)).then_some(!ended)
        });
        if mounted != Some(true) {
            skip("this kernel has no FUSE");
        }
        Self { server, at }
    }

    /// Something in it.
    fn source(&self) -> String {
        self.at.join("data").display().to_string()
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("--").arg(&self.at).output();
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// Runs `holm ARGS...`, with a time limit of a second in place of minutes.
fn hurried(sandbox: &Sandbox, limit: &str, args: &[&str]) -> Outcome {
    sandbox.run(sandbox.command_with_fault(limit, "1000").args(args))
}

fn a_start_that_hangs_is_ended(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for step in ["id-maps", "files"] {
            let mut command = sandbox.command_with_fault("HOLM_STOP_AT", step);
            let start = sandbox.run(command.env("HOLM_START_MS", "1000").args(["start", "box"]));
            start.refused(&[
                "the start of guest box takes more than 1 s: it hangs",
                "cannot start guest box: it took more than 1s",
                &format!("step `{step}`"),
            ]);
        }
    });
    sandbox.holm(&["start", "box"]).ok();
    remove(sandbox, "box");
}

fn a_start_with_a_dead_source_is_ended(sandbox: &mut Sandbox) {
    let dead = Dead::new(sandbox);
    let source = dead.source();
    let mounts = format!("mounts=[\"{source}:/mnt\"]");
    sandbox.holm(&[&["create", "box", "--set", &mounts][..], &IDLE].concat()).ok();
    changes_nothing(sandbox, |sandbox| {
        let start = hurried(sandbox, "HOLM_START_MS", &["start", "box"]);
        start.refused(&["guest box", "took more than 1s", &source, "after the step `sys`"]);
    });
    sandbox.holm(&["set", "box", "mounts=[]"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    remove(sandbox, "box");
    // These start it themselves, without a parent that would end them.
    let bind = format!("{source}:/mnt");
    for keep in [&["run"][..], &["run", "--keep", "--name", "box"]] {
        changes_nothing(sandbox, |sandbox| {
            let args = ["--base", "busybox", "--net", "none", "-v", &bind, "--", "true"];
            let run = hurried(sandbox, "HOLM_START_MS", &[keep, &args].concat());
            run.refused(&["took more than 1s", &source]);
        });
    }
}

fn a_restart_with_a_dead_source_stops_nothing(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let init = pid(&status(sandbox, "box"), "init_pid");
    let dead = Dead::new(sandbox);
    let source = dead.source();
    // By hand: `set` would look at the source itself.
    let settings = sandbox.root().join("guests/box/guest.toml");
    let text = std::fs::read_to_string(&settings).expect("its settings");
    std::fs::write(&settings, format!("mounts = [\"{source}:/mnt\"]\n{text}")).expect("ours");
    let restart = hurried(sandbox, "HOLM_START_MS", &["restart", "box"]);
    restart.refused(&["guest box", "runs on", &source]);
    assert_eq!(pid(&status(sandbox, "box"), "init_pid"), init);
    exec(sandbox, "box", "true").ok();
    remove(sandbox, "box");
}

fn a_command_says_which_one_it_waits_for(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    idle(sandbox, "create", "other");
    sandbox.holm(&["start", "other"]).ok();
    // The second in a worker process for each guest.
    says_what_it_waits_for(sandbox, &["set", "box", "memory.limit=64M"]);
    says_what_it_waits_for(sandbox, &["stop", "box", "other"]);
    sandbox.holm(&["rm", "box", "other"]).ok();
}

fn says_what_it_waits_for(sandbox: &Sandbox, args: &[&str]) {
    sandbox.holm(&["kill", "box"]);
    let mut start = Stopped::new(sandbox, &["start", "box"], "files");
    let mut command = sandbox.command();
    let mut waiting =
        command.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("holm runs");
    let said = sandbox.wait_for("what it waits for", || {
        use std::io::{BufRead, BufReader};
        let mut line = String::new();
        BufReader::new(waiting.stderr.take()?).read_line(&mut line).ok()?;
        Some(line)
    });
    for part in ["waiting for guest box", "process ", "start box`) has locked"] {
        assert!(said.contains(part), "{said}");
    }
    let (started, _) = start.resume(sandbox);
    let ended = sandbox.wait_for("it has the lock", || waiting.try_wait().expect("our child"));
    assert!(started.success() && ended.success());
}

fn a_lock_is_not_waited_for_without_end(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let root = sandbox.root().to_owned();
    for (locked, args) in [
        (root.join("guests/box"), &["start", "box"][..]),
        // As `release` has it.
        (root.clone(), &["ls"]),
        (root.join("bases/busybox"), &["create", "other", "--base", "busybox"]),
        (root.join("bases"), &["rename", "box", "other"]),
        // As a collection has it.
        (root.join("objects"), &["base", "import", "other", "busybox"]),
    ] {
        let _holder = Holder::new(sandbox, &locked);
        let outcome = hurried(sandbox, "HOLM_LOCK_MS", args);
        outcome.refused(&["lock", "process ", "sleep 100000", "has had it locked for 1 s"]);
    }
    sandbox.holm(&["start", "box"]).ok();
    remove(sandbox, "box");
}

/// A program that has something locked until this is dropped.
struct Holder(Child);

impl Holder {
    fn new(sandbox: &Sandbox, path: &Path) -> Self {
        let mut command = Command::new("flock");
        let command = command.args(["--no-fork"]).arg(path).args(["sleep", "100000"]);
        let child = command.spawn().expect("flock");
        sandbox.wait_for("it has the lock", || {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).ok()?;
            (name.trim() == "sleep").then_some(())
        });
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A disk that answers no write: a process that writes to it ends when the write does.
struct Frozen(PathBuf);

impl Frozen {
    fn new(sandbox: &Sandbox) -> Self {
        let (image, at) = (sandbox.root().join("disk.img"), sandbox.root().join("disk"));
        std::fs::create_dir_all(&at).expect("a directory");
        let script = r#"truncate -s 16M "$0" && mkfs.ext4 -q "$0" && mount -o loop "$0" "$1" && \
            rm "$0" && chmod 777 "$1""#;
        let mut sh = Command::new("sh");
        sandbox.run(sh.args(["-c", script]).arg(image).arg(&at)).ok();
        Self(at)
    }

    fn freezes(&self, frozen: bool) -> bool {
        let option = if frozen { "-f" } else { "-u" };
        Command::new("fsfreeze")
            .arg(option)
            .arg(&self.0)
            .output()
            .is_ok_and(|it| it.status.success())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.freezes(false);
        let _ = Command::new("umount").arg("-l").arg("--").arg(&self.0).output();
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn a_process_that_waits_for_its_disk_is_told(sandbox: &mut Sandbox) {
    let disk = Frozen::new(sandbox);
    let mounts = format!("mounts={}:/disk", disk.0.display());
    launch_idle(sandbox, "box", &["--set", &mounts]);
    assert!(disk.freezes(true));
    exec(sandbox, "box", "touch /disk/file < /dev/null > /dev/null 2>&1 &").ok();
    sandbox.wait_for("it waits for the disk", || {
        let script = "grep -q '^State:.D' /proc/$(pidof touch)/status";
        exec(sandbox, "box", script).status.success().then_some(())
    });
    let outcome = sandbox.holm(&["kill", "box"]);
    let message = ["still contains processes", "one in state D (ps) waits in the kernel"];
    outcome.refused(&message);
    assert!(disk.freezes(false));
    // By itself, now that the write is answered, or by another `kill`.
    sandbox.wait_for("it has ended", || {
        let outcome = sandbox.holm(&["kill", "box"]);
        let ended = outcome.status.success() || outcome.stderr.contains("is not running");
        ended.then_some(())
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// Processes that fork on and on are gone before they can be moved to the hierarchy of a limit.
fn processes_that_cannot_be_moved_are_told(sandbox: &mut Sandbox) {
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let memory = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let has = fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "memory");
        has.then(|| PathBuf::from(fields[1]))
    });
    let Some(memory) = memory else { skip("on pure v2 no process is moved") };
    launch_idle(sandbox, "box", &[]);
    let instance = sandbox.instance().expect("a command has run");
    let procs = memory.join(format!("holm-{instance}/box/cgroup.procs"));
    let set = ["set", "box", "memory.limit=64M"];
    let (outcome, hit) = with_fault(sandbox, "write:error=ESRCH", Some(&procs), &set);
    assert!(hit, "{outcome}");
    outcome.refused(&["cannot move the processes of cgroup", "they fork too fast", "freeze"]);
    // The way out that it names.
    for args in [&["freeze", "box"][..], &set, &["thaw", "box"]] {
        sandbox.holm(args).ok();
    }
    remove(sandbox, "box");
}
