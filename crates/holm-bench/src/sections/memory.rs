//! What a guest costs in private memory beside its own processes.

use std::fs::read_to_string;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::build::{Holm, SLEEP, SLEEPER};
use crate::peers;
use crate::rounds::{Case, Row, cell, in_one_line};
use crate::sections::guests::{Sleepers, init, parent, pids};
use crate::stage::Stage;

/// A duration that no other `sleep` on the host has, so that ours can be found.
const PEER_SLEEP: &str = "1034567";

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    let mut text = String::from(
        "Private pages (`Private_*` of smaps_rollup) of the processes that keep a guest of one \
         sleeping command:\nits monitor, and its init where that is not the command itself.\n\n\
         | | KiB | Private_Dirty | processes |\n|---|---:|---:|---|\n",
    );
    let mut row = |title: &str, result: Result<(Private, String), String>| {
        text += &match result {
            Ok((Private { all, dirty }, which)) => {
                format!("| {title} | {all} | {dirty} | {which} |\n")
            }
            Err(reason) => format!("| {title} | not measured: {} | | |\n", cell(&reason)),
        };
    };
    for build in &stage.holms {
        row(&Row::of(build, "holm start").title(), holm(build));
    }
    let sleep = ["/bin/sleep", PEER_SLEEP];
    let peers = [
        peers::lxc_execute(stage, "lxc-execute", "sleep", false, &sleep)?,
        Case::new("systemd-nspawn", peers::nspawn(stage, "minimal-shifted", &sleep)),
        Case::new("bwrap --unshare-all", peers::bwrap(stage, &sleep)),
    ];
    for case in peers {
        row(&case.row.title(), peer(&case, &stage.dir.join("messages")));
    }
    peers::clean_up(stage);
    Ok(text)
}

/// A guest's monitor is init's parent.
fn holm(build: &Holm) -> Result<(Private, String), String> {
    let mut sleepers = Sleepers::new(build);
    let names = sleepers.create_more(1, &SLEEPER)?;
    sleepers.start(&names)?;
    let first = init(&names[0])?;
    let monitor = parent(first).filter(|&pid| pid > 1).ok_or("init has no monitor")?;
    // The command is a child of init if init is Holm's own.
    if sleeps(first, SLEEP) { sum(&[monitor]) } else { sum(&[monitor, first]) }
}

fn peer(case: &Case, messages: &Path) -> Result<(Private, String), String> {
    let child = case.spawn(messages)?;
    let mut running = Running { child, guest: Vec::new() };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let child = i32::try_from(running.child.id()).unwrap_or(0);
        // The command's ancestors up to the one started here.
        for pid in pids().into_iter().filter(|&pid| sleeps(pid, PEER_SLEEP)) {
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
            let text = read_to_string(messages).unwrap_or_default();
            return Err(format!("it ended: {status}: {}", in_one_line(&text)));
        }
        if Instant::now() > deadline {
            return Err("its command did not start".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A peer in the foreground and its guest's processes: some peers leave those running when they are
/// killed.
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
    let args: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
    args.len() == 2 && args[0].ends_with("sleep") && args[1] == long
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
