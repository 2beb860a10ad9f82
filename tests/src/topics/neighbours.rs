//! What one guest with limits can use up of what the machine has once, and how its neighbour fares.
//!
//! Most only in machines of their own: on the host, all of its programs would run out too.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::guest::{exec, launch_idle, pid, remove, status};
use crate::options::Lane;
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

const HOST: (Lane, &str) = (Lane::Host, "it uses up what all programs of this machine share");

pub const TESTS: &[Test] = &[
    test!(terminals).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(aio_contexts).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(huge_pages).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(crashes).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(closed_connections).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(buffers_of_connections).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(memory_of_the_host).bases(&["busybox"]).alone().not_in(HOST.0, HOST.1),
    test!(memory_of_the_host_by_sockets_of_its_own)
        .bases(&["busybox"])
        .alone()
        .not_in(HOST.0, HOST.1),
    test!(no_memory_for_filters).bases(&["busybox"]).alone(),
    test!(buffers_of_tcp).bases(&["busybox"]).alone(),
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
fn launch_both(sandbox: &Sandbox, memory: &str) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let limits = ["--memory", memory, "--set", "pids.limit=100", "-v", &mount];
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
    launch_both(sandbox, "64M");
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
    // The one that the restart needs is held until it is started.
    let mut restart = Stopped::new(sandbox, &["restart", "neighbour"], "stopped");
    let taker = Taker::start(sandbox, "terminals");
    let restarted = restart.resume(sandbox);
    taker.end();
    assert!(restarted.0.success(), "{restarted:?}");
    let again = status(sandbox, "neighbour");
    assert_ne!(pid(&again, "init_pid"), pid(&before, "init_pid"));
    remove_both(sandbox);
}

/// [S4] Databases need contexts for asynchronous operations; their number is the host's.
fn aio_contexts(sandbox: &mut Sandbox) {
    raise_ceilings();
    launch_both(sandbox, "64M");
    let taker = Taker::start(sandbox, "aio-contexts");
    let one = ["exec", "neighbour", "/probe/holm-probe", "use-up", "aio-contexts", "1"];
    let got = sandbox.holm(&one).ok().stdout;
    assert_eq!(got, "1 no more wanted\n", "after {:?}", taker.said);
    taker.end();
    remove_both(sandbox);
}

/// Huge pages that the host has set apart are for its own programs: no memory limit counts them.
fn huge_pages(sandbox: &mut Sandbox) {
    const PAGES: &str = "/proc/sys/vm/nr_hugepages";
    fs::write(PAGES, "4").expect("a setting");
    let probe = sandbox.probe_directory().join("holm-probe");
    launch_both(sandbox, "64M");
    for what in ["huge-pages", "huge-files"] {
        let taker = Taker::start(sandbox, what);
        let mut host = Command::new(&probe);
        host.args(["use-up", what, "4"]);
        let host = Taker::of(host);
        let got = (taker.said.clone(), host.said.clone());
        taker.end();
        host.end();
        let none = "0 Out of memory (os error 12)\n".to_owned();
        assert_eq!(got, (none, "4 no more wanted\n".to_owned()), "{what}");
    }
    remove_both(sandbox);
    fs::write(PAGES, "0").expect("a setting");
}

/// Where core dumps go to a program, the host runs it for each crash in a guest, with the rights of
/// its root and outside of all limits. It runs a bounded number of them at once.
fn crashes(sandbox: &mut Sandbox) {
    const PATTERN: &str = "/proc/sys/kernel/core_pattern";
    raise_ceilings();
    launch_idle(sandbox, "greedy", &["--memory", "64M"]);
    let usual = fs::read_to_string(PATTERN).expect("the pattern");
    let [program, started, lock] = ["core", "started", "lock"].map(|name| {
        let path = sandbox.root().join("tmp").join(name);
        path.to_str().expect("a path").to_owned()
    });
    let script = format!("#!/bin/sh\necho >>{started}\nexec /usr/bin/flock {lock} true\n");
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    let held = fs::File::create(&lock).expect("a lock");
    held.lock().expect("the lock");
    fs::write(PATTERN, format!("|{program}")).expect("a pattern");
    let crash = "sh -c 'kill -SEGV $$'";
    let mut waiting = sandbox.command();
    let many = format!("for i in $(seq 16); do {crash} & done; wait");
    waiting.args(["exec", "greedy", "sh", "-c", &many]);
    let mut waiting = waiting.spawn().expect("holm exec");
    let count = || fs::read_to_string(&started).map_or(0, |text| text.lines().count());
    sandbox.wait_for("sixteen programs of the host", || (count() == 16).then_some(()));
    // None of these waits for one of its own.
    exec(sandbox, "greedy", &format!("for i in $(seq 8); do {crash}; done; true")).ok();
    let in_all = count();
    drop(held);
    waiting.wait().expect("its end");
    fs::write(PATTERN, usual).expect("the usual pattern");
    assert_eq!(in_all, 16);
    remove(sandbox, "greedy");
}

/// The host counts the TCP connections that programs have closed before all data was taken, and
/// resets those above its ceiling.
fn closed_connections(sandbox: &mut Sandbox) {
    // As on a machine with little memory: more of them take minutes in an emulated one.
    fs::write("/proc/sys/net/ipv4/tcp_max_orphans", "1024").expect("a setting");
    a_connection_beside(sandbox, "tcp-orphans", "2000");
}

/// The host bounds the memory of all TCP connections, and resets those that are closed above that.
fn buffers_of_connections(sandbox: &mut Sandbox) {
    // In pages.
    fs::write("/proc/sys/net/ipv4/tcp_mem", "2000 3000 4000").expect("a setting");
    a_connection_beside(sandbox, "tcp-sockets", "50");
}

/// One of a guest whose neighbour has so many arrives whole.
fn a_connection_beside(sandbox: &Sandbox, what: &str, count: &str) {
    raise_ceilings();
    launch_both(sandbox, "500M");
    let mut command = sandbox.command();
    command.args(["exec", "greedy", "/probe/holm-probe", "use-up", what, count]);
    let taker = Taker::of(command);
    let one = sandbox.holm(&["exec", "neighbour", "/probe/holm-probe", "closed-connection"]);
    assert_eq!(taker.said, format!("{count} no more wanted\n"));
    let printed = one.ok().stdout;
    assert!(printed.starts_with("0 of "), "{printed}");
    taker.end();
    remove_both(sandbox);
}

/// [S2] Guests can use up the memory for compiled filters, which the kernel bounds for all but root
/// on the host. Some kernels interpret a filter then; the others refuse it.
fn no_memory_for_filters(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let lowered = LowLimit::new("/proc/sys/net/core/bpf_jit_limit");
    let command = exec(sandbox, "box", "grep Seccomp_filters /proc/self/status");
    let restart = sandbox.holm(&["restart", "box"]);
    let look = ["cat", "/proc/self/status"];
    let run = ["run", "--base", "busybox", "--net", "none", "--"];
    let run = sandbox.holm(&[&run[..], &look].concat());
    drop(lowered);
    restart.ok();
    for outcome in [command, run] {
        let printed = outcome.ok().stdout;
        assert!(printed.contains("Seccomp_filters:\t1"), "{printed}");
    }
    remove(sandbox, "box");
}

/// A ceiling of the kernel's that is as low as it can be until this is dropped.
struct LowLimit {
    path: &'static str,
    usual: String,
}

impl LowLimit {
    fn new(path: &'static str) -> Self {
        let usual = fs::read_to_string(path).expect("the limit");
        fs::write(path, "1").expect("a lower limit");
        Self { path, usual }
    }
}

impl Drop for LowLimit {
    fn drop(&mut self) {
        fs::write(self.path, &self.usual).expect("the usual limit");
    }
}

/// What a guest can make the kernel allocate for it. Not among them, because the kernel charges
/// them to nobody, and the machine would run out (docs/security.md): terminals, and the queues of
/// netlink sockets. Nor are tracked connections, of which a guest has 16384 at most: 5 MiB.
const ALLOCATED: [&str; 27] = [
    "files",
    "pipes",
    "unix-sockets",
    "udp-sockets",
    "tcp-sockets",
    "packet-sockets",
    "memory-files",
    "events",
    "timers",
    "process-timers",
    "locks",
    "epolls",
    "inotify-watches",
    "directories",
    "missing-files",
    "mounts",
    "network-namespaces",
    "ipc-namespaces",
    "routes",
    "neighbours",
    "nft-chains",
    "semaphores",
    "shared-memory",
    "tcp-orphans",
    "user-namespaces",
    "message-queues",
    "aio-contexts",
];

/// Of these, what a native guest has in the host's own network namespace.
const SOCKETS: [&str; 4] = ["unix-sockets", "udp-sockets", "tcp-sockets", "tcp-orphans"];

/// A guest with a limit of 64 MiB cannot take much more than that of the host's memory: of a
/// network namespace the kernel charges only about the half.
fn memory_of_the_host(sandbox: &mut Sandbox) {
    is_not_lost(sandbox, "none", &ALLOCATED);
}

fn memory_of_the_host_by_sockets_of_its_own(sandbox: &mut Sandbox) {
    is_not_lost(sandbox, "native", &SOCKETS);
}

/// How much memory the host has less, while a guest takes all that it can get of each.
fn is_not_lost(sandbox: &Sandbox, mode: &str, kinds: &[&str]) {
    raise_ceilings();
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let mut lost = Vec::new();
    for what in kinds {
        let before = available_mib();
        let mut command = sandbox.command();
        command.args(["run", "--base", "busybox", "--net", mode, "-v", &mount]);
        command.args(["--memory", "64M", "--set", "pids.limit=100", "--"]);
        command.args(["/probe/holm-probe", "use-up", what, "100000"]);
        let taker = Taker::of(command);
        let missing = before.saturating_sub(available_mib());
        println!("{missing} MiB by {what}: {}", taker.said.trim_end());
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

/// [S9] What a guest's TCP sockets have queued is bounded by its memory limit, on hybrid hosts too,
/// whose memory controller does not count it otherwise.
fn buffers_of_tcp(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    launch_idle(sandbox, "greedy", &["--memory", "64M", "-v", &mount]);
    let before = tcp_mib();
    let mut command = sandbox.command();
    command.args(["exec", "greedy", "/probe/holm-probe", "use-up", "tcp-sockets", "100"]);
    let taker = Taker::of(command);
    let queued = tcp_mib().saturating_sub(before);
    // On pure v2 they are charged with all else, and the limit may have ended it.
    let (said, ended) = (taker.said.clone(), taker.count().is_none());
    taker.end();
    assert!(queued < 96 && (queued >= 16 || ended), "{queued} MiB by {said:?}");
    sandbox.holm(&["rm", "--force", "greedy"]).ok();
}

/// What the TCP sockets of the whole host have queued (`/proc/net/sockstat`).
fn tcp_mib() -> u64 {
    const PAGES_OF_A_MIB: u64 = 256;
    let text = fs::read_to_string("/proc/net/sockstat").expect("the sockets");
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "));
    let pages = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    pages.expect("`mem` and a number of pages") / PAGES_OF_A_MIB
}
