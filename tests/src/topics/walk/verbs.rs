use super::strace::{Call, Fault, Traced, record, run_with};
use crate::command::Outcome;
use crate::guest::{pid, status};
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};
use crate::topics::bases::objects;
use crate::traces::{settled, traces};

pub const TESTS: &[Test] = &[
    test!(create).bases(&["busybox"]),
    test!(exec).bases(&["busybox"]),
    test!(import),
    test!(importer),
    test!(kill).bases(&["busybox"]),
    test!(list).bases(&["busybox"]),
    test!(monitors_end).bases(&["busybox"]),
    test!(remove).bases(&["busybox"]),
    test!(rename).bases(&["busybox"]),
    test!(restart).bases(&["busybox"]),
    test!(run).bases(&["busybox"]),
    test!(set_running).bases(&["busybox"]),
    test!(set_stopped).bases(&["busybox"]),
    test!(start).bases(&["busybox"]),
    test!(start_launcher).bases(&["busybox"]),
    test!(start_init).bases(&["busybox"]),
    test!(exec_child).bases(&["busybox"]),
    test!(stop).bases(&["busybox"]),
];

/// The guest that a verb finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guest {
    Absent,
    Stopped,
    Running,
}

/// A verb, the guest that it finds, and whether a running guest must run on.
struct Verb<'a> {
    traced: Traced,
    args: &'a [&'a str],
    guest: Guest,
    runs_on: bool,
}

impl<'a> Verb<'a> {
    fn new(args: &'a [&'a str], guest: Guest) -> Self {
        Self { traced: Traced::Holm, args, guest, runs_on: false }
    }

    /// A running guest must run on.
    fn harmless(args: &'a [&'a str]) -> Self {
        Self { runs_on: true, ..Self::new(args, Guest::Running) }
    }

    fn imports(&self) -> bool {
        self.args.contains(&"import")
    }
}

const CREATE: &[&str] = &["create", "box", "--base", "busybox", "--", "sleep", "100000"];

fn create(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(CREATE, Guest::Absent));
}

fn exec(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["exec", "box", "true"]));
}

fn import(sandbox: &mut Sandbox) {
    walk_import(sandbox, Traced::Holm);
}

fn importer(sandbox: &mut Sandbox) {
    walk_import(sandbox, Traced::Importer);
}

fn walk_import(sandbox: &mut Sandbox, traced: Traced) {
    let source = system(sandbox, |dir| {
        std::fs::write(dir.join("etc/hostname"), "other\n").expect("a file");
        std::fs::create_dir_all(dir.join("usr/share")).expect("a directory");
        std::fs::hard_link(dir.join("etc/hostname"), dir.join("etc/same")).expect("a link");
    });
    let args = &["base", "import", "other", &source];
    walk(sandbox, &Verb { traced, ..Verb::new(args, Guest::Absent) });
}

fn kill(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["kill", "box"], Guest::Running));
}

fn list(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["ls"]));
}

fn monitors_end(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { traced: Traced::Monitor, ..Verb::new(&[], Guest::Running) });
}

fn remove(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rm", "box"], Guest::Stopped));
}

fn rename(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rename", "box", "other"], Guest::Stopped));
}

fn restart(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["restart", "box"], Guest::Running));
}

fn run(sandbox: &mut Sandbox) {
    let args = &["run", "--name", "box", "--base", "busybox", "--", "true"];
    walk(sandbox, &Verb::new(args, Guest::Absent));
}

fn set_running(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["set", "box", "memory.limit=64M"]));
}

fn set_stopped(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["set", "box", "memory.limit=64M"], Guest::Stopped));
}

fn start(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["start", "box"], Guest::Stopped));
}

fn start_launcher(sandbox: &mut Sandbox) {
    let verb = Verb::new(&["start", "box"], Guest::Stopped);
    walk(sandbox, &Verb { traced: Traced::Launcher, ..verb });
}

fn start_init(sandbox: &mut Sandbox) {
    let verb = Verb::new(&["start", "box"], Guest::Stopped);
    walk(sandbox, &Verb { traced: Traced::Init, ..verb });
}

fn exec_child(sandbox: &mut Sandbox) {
    let verb = Verb::harmless(&["exec", "box", "true"]);
    walk(sandbox, &Verb { traced: Traced::ExecChild, ..verb });
}

fn stop(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["stop", "box"], Guest::Running));
}

/// How many faults the usual run samples; `--slow` makes all of them.
const SAMPLES: usize = 4;

/// How many failures are enough: a leaving is waited for, each time.
const ENOUGH: usize = 10;

fn walk(sandbox: &mut Sandbox, verb: &Verb) {
    // The root now has what it keeps after its first guest, or its first import.
    if verb.imports() {
        sandbox.holm(verb.args).ok();
    } else {
        prepare(sandbox, Guest::Running);
    }
    tidy(sandbox);
    settled(sandbox);
    let before = left(sandbox);
    prepare(sandbox, verb.guest);
    let (outcome, calls) = record(sandbox, verb.traced, verb.args);
    outcome.ok();
    tidy(sandbox);
    let faults: Vec<(&Call, Fault)> = calls.iter().flat_map(faults_at).collect();
    let step = if sandbox.options.slow { 1 } else { faults.len().div_ceil(SAMPLES) };
    // Other samples each time, so that many runs see what one misses.
    let offset = std::process::id() as usize % step;
    let (mut made, mut failures) = (0, Vec::new());
    let who = format!("{:?} {}", verb.traced, verb.args.join(" "));
    for (call, fault) in faults.iter().skip(offset).step_by(step) {
        if failures.len() == ENOUGH {
            break;
        }
        if let Err(failure) = try_fault(sandbox, verb, &before, call, *fault, &mut made) {
            let failure = format!("{who}, {fault:?} at {} {}: {failure}", call.name, call.nth);
            println!("walk: {failure}");
            failures.push(failure);
        }
    }
    println!("walk: {who}: {made} faults of {}, {} failures", faults.len(), failures.len());
    assert!(failures.is_empty(), "{} of {made}:\n{}", failures.len(), failures.join("\n"));
}

fn faults_at(call: &Call) -> Vec<(&Call, Fault)> {
    let errors = call.errors().iter().map(|errno| (call, Fault::Error(errno)));
    std::iter::once((call, Fault::Kill)).chain(errors).collect()
}

/// Makes one fault, and checks what it has done.
fn try_fault(
    sandbox: &Sandbox,
    verb: &Verb,
    before: &[String],
    call: &Call,
    fault: Fault,
    made: &mut usize,
) -> Result<(), String> {
    prepare(sandbox, verb.guest);
    let init = || pid(&status(sandbox, "box"), "init_pid");
    let ran_before = verb.runs_on.then(init);
    let (outcome, hit) = run_with(sandbox, verb.traced, call, fault, verb.args);
    *made += usize::from(hit);
    let checked = check_message(&outcome, fault).and_then(|()| {
        let listed = sandbox.holm(&["ls"]);
        if !listed.status.success() {
            return Err(format!("the next ls failed\n{listed}"));
        }
        if let Some(ran_before) = ran_before {
            let now = status(sandbox, "box");
            if now["init_pid"].as_i64() != Some(i64::from(ran_before)) {
                return Err(format!("the guest does not run on: {now}\n{outcome}"));
            }
        }
        let name = ["box", "other"].into_iter().find(|name| is_there(sandbox, name));
        if name.is_none() && verb.guest != Guest::Absent && verb.args.first() != Some(&"rm") {
            return Err(format!("the guest is lost\n{outcome}\n{listed}"));
        }
        check_start(sandbox, name)?;
        if verb.imports() { check_base(sandbox, verb) } else { Ok(()) }
    });
    tidy(sandbox);
    let mut now = Vec::new();
    let clean = sandbox.poll_until_limit(|| {
        sandbox.holm(&["ls"]).ok();
        now = left(sandbox);
        (now == before).then_some(())
    });
    checked?;
    clean.ok_or_else(|| format!("left behind: {now:?} instead of {before:?}\n{outcome}"))
}

/// A command that failed names the error that the kernel gave.
fn check_message(outcome: &Outcome, fault: Fault) -> Result<(), String> {
    let said = outcome.stderr.trim();
    if said.contains("panicked") {
        return Err(format!("it panicked\n{outcome}"));
    }
    match fault {
        Fault::Error(errno) if !outcome.status.success() && !names(said, errno) => {
            Err(format!("it failed and does not say why\n{outcome}"))
        }
        _ => Ok(()),
    }
}

/// Whether a message has the words of musl or of glibc for an error.
fn names(message: &str, errno: &str) -> bool {
    let words: &[&str] = match errno {
        "ENOMEM" => &["Out of memory", "Cannot allocate memory"],
        "EIO" => &["I/O error", "Input/output error"],
        "ENOSPC" => &["No space left on device"],
        "EMFILE" => &["No file descriptors available", "Too many open files"],
        _ => panic!("{errno} is not among the faults"),
    };
    words.iter().any(|words| message.contains(words))
}

fn is_there(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.root().join("guests").join(name).exists()
}

/// A guest that does not run starts.
fn check_start(sandbox: &Sandbox, name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else { return Ok(()) };
    if status(sandbox, name)["init_pid"].is_null() {
        let started = sandbox.holm(&["start", name]);
        if !started.status.success() {
            return Err(format!("the guest does not start\n{started}"));
        }
    }
    Ok(())
}

/// The base is there and whole, or can be imported; a holm-import whose holm was killed may finish
/// meanwhile.
fn check_base(sandbox: &Sandbox, verb: &Verb) -> Result<(), String> {
    let is_there = || sandbox.root().join("bases/other").exists();
    if !is_there() {
        let again = sandbox.holm(verb.args);
        if !again.status.success() && !is_there() {
            return Err(format!("importing again fails\n{again}"));
        }
    }
    let ran =
        sandbox.holm(&["run", "--base", "other", "--net", "none", "--", "/bin/sh", "-c", ":"]);
    if !ran.status.success() {
        return Err(format!("it does not run\n{ran}"));
    }
    let listed = sandbox.holm(&["base", "ls"]).ok();
    if listed.stdout.contains("damaged") { Err(listed.to_string()) } else { Ok(()) }
}

/// Makes the guest that a verb is to find.
#[track_caller]
fn prepare(sandbox: &Sandbox, guest: Guest) {
    if guest != Guest::Absent {
        sandbox.holm(CREATE).ok();
    }
    if guest == Guest::Running {
        sandbox.holm(&["start", "box"]).ok();
    }
}

/// Removes whatever guest there is, and the imported base.
fn tidy(sandbox: &Sandbox) {
    for name in ["box", "other"] {
        sandbox.holm(&["rm", "--force", name]);
    }
    if sandbox.root().join("bases/other").exists() {
        sandbox.holm(&["base", "rm", "other"]);
    }
}

/// What the root has on the host and in its directories. An id that a killed command has allocated
/// is released after ten seconds, by a test of its own.
fn left(sandbox: &Sandbox) -> Vec<String> {
    let mut all = traces(sandbox);
    all.retain(|item| !item.starts_with("ids/"));
    // Those of the shared bases are nobody's here.
    if !sandbox.root().join("objects").is_symlink() {
        all.extend(objects(sandbox.root()));
    }
    let entries = std::fs::read_dir(sandbox.root()).expect("the root");
    all.extend(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()));
    all.sort();
    all
}
