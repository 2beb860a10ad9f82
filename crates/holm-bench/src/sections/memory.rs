//! What a guest costs in private memory beside its own processes.

use std::fs::read_to_string;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::peers;
use crate::race::cell;
use crate::sections::guests::{Sleepers, init, parent, pids};
use crate::stage::Stage;

/// An argument of sleep that nobody else gives.
const NAP: &str = "1034567";

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    let mut text = String::from(
        "Private pages (`Private_*` of smaps_rollup) of the processes that keep a guest of one sleeping command: its monitor, \
         and its init where that is not the command itself.\n\n| | KiB | of it written | processes |\n|---|---:|---:|---|\n",
    );
    let mut row = |name: &str, result: Result<(Private, String), String>| {
        text += &match result {
            Ok((Private { all, dirty }, which)) => {
                format!("| {name} | {all} | {dirty} | {which} |\n")
            }
            Err(reason) => format!("| {name} | not measured: {} | | |\n", cell(&reason)),
        };
    };
    row("holm start", holm(stage));
    let sleep = ["/bin/sleep", NAP];
    let peers = [
        ("lxc-execute", peers::lxc_execute(stage, "nap", false, &sleep)?),
        ("systemd-nspawn", peers::nspawn(stage, "minimal-shifted", &sleep)),
        ("bwrap --unshare-all", peers::bwrap(stage, &sleep)),
    ];
    for (name, argv) in peers {
        row(name, peer(&argv));
    }
    peers::clean_up(stage);
    Ok(text)
}

/// A guest's monitor is init's parent.
fn holm(stage: &Stage) -> Result<(Private, String), String> {
    let mut sleepers = Sleepers::new(stage);
    let names = sleepers.create_up_to(1)?;
    sleepers.start(&names)?;
    let first = init(&names[0])?;
    let monitor = parent(first).filter(|&pid| pid > 1).ok_or("init has no monitor")?;
    // The command is a child of init if init is Holm's own.
    if sleeps(first, "1000000") { sum(&[monitor]) } else { sum(&[monitor, first]) }
}

fn peer(argv: &[String]) -> Result<(Private, String), String> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "not installed".to_owned(),
        _ => e.to_string(),
    })?;
    let mut running = Running { child, guest: Vec::new() };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let child = i32::try_from(running.child.id()).unwrap_or(0);
        // The command's ancestors up to the one started here.
        for pid in pids().into_iter().filter(|&pid| sleeps(pid, NAP)) {
            let mut above = Vec::new();
            let mut next = pid;
            while next != child && next > 1 {
                next = parent(next).unwrap_or(0);
                above.push(next);
            }
            if next == child && !above.is_empty() {
                running.guest = [&[pid], &above[..]].concat();
                return sum(&above);
            }
        }
        if let Ok(Some(status)) = running.child.try_wait() {
            return Err(format!("it ended: {status}"));
        }
        if Instant::now() > deadline {
            return Err("its command did not start".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A peer in the foreground and its guest's processes, which not every peer takes along when it ends.
struct Running {
    child: Child,
    guest: Vec<i32>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut command = Command::new("kill");
        command.arg("-9").args(self.guest.iter().map(i32::to_string));
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether a process is `sleep LONG`, whatever path it was started by.
fn sleeps(pid: i32, long: &str) -> bool {
    let line = read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
    words.len() == 2 && words[0].ends_with("sleep") && words[1] == long
}

/// Pages that only one process has, in KiB.
#[derive(Default)]
struct Private {
    all: u64,
    /// Without those of files, which a second guest of the kind would share.
    dirty: u64,
}

fn sum(pids: &[i32]) -> Result<(Private, String), String> {
    let mut total = Private::default();
    let mut which = Vec::new();
    for pid in pids {
        let Private { all, dirty } = private(*pid)?;
        let name = read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        which.push(format!("{} {all}", name.trim()));
        total.all += all;
        total.dirty += dirty;
    }
    Ok((total, which.join(", ")))
}

fn private(pid: i32) -> Result<Private, String> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let kib = |key: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let dirty = kib("Private_Dirty:");
    Ok(Private { all: dirty + kib("Private_Clean:"), dirty })
}
