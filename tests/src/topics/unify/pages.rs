//! What guests have in common is in memory once: the same page frames, as the host's
//! /proc/PID/pagemap shows them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::guest::{exec, pid, status};
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(equal_files_of_two_bases_are_one_page),
    test!(unified_files_are_one_page_until_written_to),
];

/// Bit 63 of an entry: the page is in memory; bits 0 to 54: its frame (pagemap, in the kernel's
/// documentation of /proc).
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// A process in a guest that has a page of a file mapped until this is dropped.
struct Held {
    command: Child,
    frame: u64,
}

impl Held {
    fn new(sandbox: &Sandbox, guest: &str, file: &str, write: bool) -> Self {
        let mut command = sandbox.command();
        command.args(["exec", guest, "--", "/probe/holm-probe", "hold-page", file]);
        if write {
            command.arg("--write");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut command = command.spawn().expect("holm runs");
        let mut line = String::new();
        let output = command.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("what it says");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [inside, address, _] = words[..] else { panic!("{guest}: {line}") };
        let process = on_host(pid(&status(sandbox, guest), "init_pid"), inside);
        let frame = frame_of(&process, address.parse().expect("an address"));
        Self { command, frame }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.command.stdin.take());
        let _ = self.command.wait();
    }
}

/// The process with the id `inside` in the pid namespace of `init`, by its id on the host.
fn on_host(init: i32, inside: &str) -> String {
    let namespace = |id: &str| std::fs::read_link(format!("/proc/{id}/ns/pid")).ok();
    let wanted = namespace(&init.to_string());
    assert!(wanted.is_some(), "init {init} has no pid namespace");
    let ids = std::fs::read_dir("/proc").expect("/proc").flatten();
    ids.map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|id| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let mut lines = status.lines();
            let ids = lines.find_map(|line| line.strip_prefix("NSpid:"));
            ids.and_then(|ids| ids.split_whitespace().last()) == Some(inside)
                && namespace(id) == wanted
        })
        .expect("the process that holds the page")
}

/// The frame of the page at `address`.
fn frame_of(process: &str, address: u64) -> u64 {
    let pagemap = File::open(format!("/proc/{process}/pagemap")).expect("pagemap");
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, address / 4096 * 8).expect("an entry");
    let entry = u64::from_ne_bytes(entry);
    assert!(entry & PRESENT != 0 && entry & FRAME != 0, "no frame: {entry:x}");
    entry & FRAME
}

fn library(dir: &Path) {
    let body: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(dir.join("library"), body).expect("a file");
}

fn launch(sandbox: &Sandbox, guest: &str, base: &str) {
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let head = ["launch", guest, "--base", base, "--net", "none", "--set", &mount];
    sandbox.holm(&[&head[..], &["--", "sleep", "100000"]].concat()).ok();
}

fn equal_files_of_two_bases_are_one_page(sandbox: &mut Sandbox) {
    for base in ["one", "two"] {
        let source = system(sandbox, |dir| {
            library(dir);
            // So that the bases are not the same.
            std::fs::write(dir.join(base), base).expect("a file");
        });
        sandbox.holm(&["base", "import", base, &source]).ok();
        launch(sandbox, base, base);
    }
    let a = Held::new(sandbox, "one", "/library", false);
    let b = Held::new(sandbox, "two", "/library", false);
    assert_eq!(a.frame, b.frame);
    // Its writer gets a page of its own, and the other keeps what it has.
    let written = Held::new(sandbox, "one", "/library", true);
    let c = Held::new(sandbox, "two", "/library", false);
    assert_ne!(written.frame, b.frame);
    assert_eq!(c.frame, b.frame);
    drop((a, b, c, written));
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

fn unified_files_are_one_page_until_written_to(sandbox: &mut Sandbox) {
    let source = system(sandbox, |dir| {
        std::os::unix::fs::symlink("busybox", dir.join("bin/seq")).expect("a link");
    });
    sandbox.holm(&["base", "import", "plain", &source]).ok();
    for guest in ["a", "b"] {
        launch(sandbox, guest, "plain");
        exec(sandbox, guest, "mkdir /srv; seq 100000 >/srv/same").ok();
    }
    let frames = || {
        let held = ["a", "b"].map(|guest| Held::new(sandbox, guest, "/srv/same", false));
        [held[0].frame, held[1].frame]
    };
    let [a, b] = frames();
    assert_ne!(a, b, "before");
    sandbox.holm(&["stop", "a", "b"]).ok();
    thread::sleep(Duration::from_millis(150));
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    sandbox.holm(&["start", "a", "b"]).ok();
    let [a, b] = frames();
    assert_eq!(a, b, "unified");
    exec(sandbox, "a", "echo changed >>/srv/same").ok();
    let [a, after] = frames();
    assert_ne!(a, after, "written to");
    assert_eq!(after, b, "of the other");
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
}
