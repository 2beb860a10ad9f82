//! What one guest with limits can use up of what the machine has once, and how its neighbour fares.
//!
//! Only in machines of their own: on the host, all of its programs would run out too.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::guest::{exec, launch_idle, pid, remove, status};
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

const HOST: (Lane, &str) = (Lane::Host, "it uses up what all programs of this machine share");

pub const TESTS: &[Test] = &[
    test!(terminals).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(aio_contexts).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(memory_of_the_host).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(compiled_filters).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
];

/// Sets what `make install` sets at boot.
fn raise_ceilings() {
    let settings = include_str!("../../../scripts/holm-sysctl.conf");
    for line in settings.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once('=').expect("NAME = VALUE");
        let path = format!("/proc/sys/{}", name.trim().replace('.', "/"));
        fs::write(&path, value.trim()).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

/// Two guests: one that takes, limited, and its neighbour.
fn launch_both(sandbox: &Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let limits = ["--memory", "64M", "--set", "pids.limit=100", "-v", &mount];
    launch_idle(sandbox, "greedy", &limits);
    launch_idle(sandbox, "neighbour", &["-v", &mount]);
}

fn remove_both(sandbox: &Sandbox) {
    // Its memory limit may have ended it.
    sandbox.holm(&["rm", "--force", "greedy"]).ok();
    remove(sandbox, "neighbour");
}

/// A process in the first guest that has taken all it could get.
struct Taker {
    process: Child,
    said: String,
}

impl Taker {
    fn start(sandbox: &Sandbox, what: &str) -> Self {
        let mut command = sandbox.command();
        command.args(["exec", "greedy", "/probe/holm-probe", "use-up", what, "1000000"]);
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("holm exec");
        let mut said = String::new();
        let output = process.stdout.take().expect("piped");
        // At the end of its output if its guest's memory limit has ended it.
        BufReader::new(output).read_line(&mut said).expect("a line");
        Self { process, said }
    }

    fn count(&self) -> Option<u32> {
        self.said.split(' ').next()?.parse().ok()
    }

    fn end(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().expect("its end");
    }
}

/// [S7] Each start and each console needs a terminal. The kernel bounds those of all guests
/// together, and charges them to nobody: a neighbour cannot start then, but it loses nothing.
fn terminals(sandbox: &mut Sandbox) {
    raise_ceilings();
    launch_both(sandbox);
    let taker = Taker::start(sandbox, "terminals");
    let before = status(sandbox, "neighbour");
    let restart = sandbox.holm(&["restart", "neighbour"]);
    let command = exec(sandbox, "neighbour", "echo works");
    let after = status(sandbox, "neighbour");
    assert!(taker.count() > Some(10_000), "{}", taker.said);
    taker.end();
    restart.refused(&["runs on", "kernel.pty.max"]);
    assert_eq!(command.ok().stdout, "works\n");
    assert_eq!(pid(&after, "init_pid"), pid(&before, "init_pid"));
    sandbox.holm(&["restart", "neighbour"]).ok();
    remove_both(sandbox);
}

/// [S4] Databases need contexts for asynchronous operations; their number is the host's.
fn aio_contexts(sandbox: &mut Sandbox) {
    raise_ceilings();
    launch_both(sandbox);
    let taker = Taker::start(sandbox, "aio-contexts");
    let one = ["exec", "neighbour", "/probe/holm-probe", "use-up", "aio-contexts", "1"];
    let got = sandbox.holm(&one).ok().stdout;
    assert_eq!(got, "1 no more wanted\n", "after {:?}", taker.said);
    taker.end();
    remove_both(sandbox);
}

/// [S2] The kernel bounds the memory of compiled filters, those of the system call filter too.
fn compiled_filters(sandbox: &mut Sandbox) {
    const LIMIT: &str = "/proc/sys/net/core/bpf_jit_limit";
    let usual = fs::read_to_string(LIMIT).expect("the limit");
    launch_both(sandbox);
    // Filling the usual 256 MiB takes minutes here.
    fs::write(LIMIT, "16777216").expect("a lower limit");
    let taker = Taker::start(sandbox, "filters");
    assert!(taker.count() > Some(10) && !taker.said.contains("no more wanted"), "{}", taker.said);
    let command = exec(sandbox, "neighbour", "echo works");
    let restart = sandbox.holm(&["restart", "neighbour"]);
    let run = sandbox.holm(&["run", "--base", "busybox", "--net", "none", "--", "echo", "works"]);
    taker.end();
    fs::write(LIMIT, usual).expect("the usual limit");
    assert_eq!(command.ok().stdout, "works\n");
    restart.ok();
    assert_eq!(run.ok().stdout, "works\n");
    remove_both(sandbox);
}

/// What a guest can make the kernel allocate for it. Not among them, because the kernel charges
/// them to nobody, and the machine would run out (docs/security.md): terminals, and the queues of
/// netlink and packet sockets.
const ALLOCATED: [&str; 17] = [
    "files",
    "pipes",
    "unix-sockets",
    "udp-sockets",
    "tcp-sockets",
    "memory-files",
    "events",
    "timers",
    "epolls",
    "inotify-watches",
    "directories",
    "missing-files",
    "mounts",
    "network-namespaces",
    "ipc-namespaces",
    "message-queues",
    "aio-contexts",
];

/// A guest with a limit of 64 MiB cannot take much more than that of the host's memory: of a
/// network namespace the kernel charges only about the half.
fn memory_of_the_host(sandbox: &mut Sandbox) {
    raise_ceilings();
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let mut lost = Vec::new();
    for what in ALLOCATED {
        let before = available_mib();
        let mut command = sandbox.command();
        command.args(["run", "--base", "busybox", "--net", "none", "-v", &mount]);
        command.args(["--memory", "64M", "--set", "pids.limit=100", "--"]);
        command.args(["/probe/holm-probe", "use-up", what, "100000"]);
        let taker = Taker::of(command);
        let missing = before.saturating_sub(available_mib());
        if missing > 3 * 64 {
            lost.push(format!("{missing} MiB by {what}: {}", taker.said));
        }
        taker.end();
    }
    assert!(lost.is_empty(), "{lost:?}");
}

/// The host's memory that is available (`/proc/meminfo`).
fn available_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("the memory");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("a line of KiB");
    kib.parse::<u64>().expect("a number") / 1024
}
