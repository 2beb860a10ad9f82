//! What must be so after a fault, whatever it has hit.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use super::strace::Fault;
use super::verb::{FILES, Guest, Verb, content};
use crate::command::Outcome;
use crate::guest::status;
use crate::sandbox::Sandbox;
use crate::topics::bases::objects;
use crate::traces::traces;

/// Checks what a verb with a fault has done. Its guest's init was `ran_before`, and must be still.
pub fn check(
    sandbox: &Sandbox,
    verb: &Verb,
    fault: Fault,
    outcome: &Outcome,
    ran_before: Option<i32>,
) -> Result<(), String> {
    check_message(outcome, fault)?;
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
    let names = ["box", "other"].into_iter().filter(|name| is_there(sandbox, name));
    let names: Vec<&str> = names.collect();
    let wanted = usize::from(verb.guest != Guest::Absent && !verb.removes());
    if names.len() < wanted + usize::from(verb.two) {
        return Err(format!("the guest is lost\n{outcome}\n{listed}"));
    }
    for name in names {
        check_start(sandbox, name)?;
    }
    if verb.files {
        check_files(sandbox)?;
    }
    check_temporary(sandbox)?;
    let volume = sandbox.holm(&["volume", "ls"]);
    if !volume.status.success() || volume.stderr.contains("damaged") {
        return Err(format!("half a volume\n{volume}"));
    }
    verb.import.map_or(Ok(()), |import| check_base(sandbox, import))
}

/// A command that failed names the error that the kernel gave.
fn check_message(outcome: &Outcome, fault: Fault) -> Result<(), String> {
    let said = outcome.stderr.trim();
    if said.contains("panicked") {
        return Err(format!("it panicked\n{outcome}"));
    }
    match fault {
        // What `fsck` cannot read is a finding, which it prints.
        Fault::Error(errno)
            if !outcome.status.success()
                && !names(said, errno)
                && !names(&outcome.stdout, errno) =>
        {
            Err(format!("it failed and does not say why\n{outcome}"))
        }
        _ => Ok(()),
    }
}

/// Whether a message has the words of musl, of glibc, or of minimal init for an error.
fn names(message: &str, errno: &str) -> bool {
    let words: &[&str] = match errno {
        // glibc says EAGAIN of a thread that it cannot make.
        "ENOMEM" => &[
            "Out of memory",
            "Cannot allocate memory",
            "memory is short",
            "cannot start a thread: Resource temporarily unavailable",
        ],
        "EIO" => &["I/O error", "Input/output error"],
        "ENOSPC" => &["No space left on device"],
        "EPERM" => &["Operation not permitted"],
        "EMFILE" => &["No file descriptors available", "Too many open files"],
        _ => panic!("{errno} is not among the faults"),
    };
    words.iter().any(|words| message.contains(words))
}

fn is_there(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.root().join("guests").join(name).exists()
}

/// A guest that does not run starts; a worker whose holm was killed may start it meanwhile.
fn check_start(sandbox: &Sandbox, name: &str) -> Result<(), String> {
    let is_off = || status(sandbox, name)["init_pid"].is_null();
    if is_off() {
        let started = sandbox.holm(&["start", name]);
        if !started.status.success() && is_off() {
            return Err(format!("the guest does not start\n{started}"));
        }
    }
    Ok(())
}

/// The guest has its files, whether they are its own or objects by now.
fn check_files(sandbox: &Sandbox) -> Result<(), String> {
    for name in FILES {
        let read = sandbox.holm(&["exec", "box", "cat", &format!("/{name}")]);
        if read.stdout != content() {
            let (bytes, said) = (read.stdout.len(), &read.stderr);
            return Err(format!("/{name} has {bytes} bytes of something else: {said}"));
        }
    }
    Ok(())
}

/// The next commands have removed what a killed one had begun to write.
fn check_temporary(sandbox: &Sandbox) -> Result<(), String> {
    let guests = sandbox.root().join("guests");
    let guests = std::fs::read_dir(guests).into_iter().flatten().flatten();
    let directories = guests.map(|guest| guest.path()).chain([sandbox.root().to_owned()]);
    let entries = directories.flat_map(std::fs::read_dir).flat_map(Iterator::flatten);
    let hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let left: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(hidden).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("temporary files stay: {left:?}")) }
}

/// The base is there and whole, or can be imported; a holm-import whose holm was killed may finish
/// meanwhile.
fn check_base(sandbox: &Sandbox, import: &[&str]) -> Result<(), String> {
    let is_there = || sandbox.root().join("bases/other").exists();
    if !is_there() {
        let again = sandbox.holm(import);
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

/// What the root has on the host and in its directories. An id that a killed command has allocated
/// is released after ten seconds, by a test of its own.
pub fn left(sandbox: &Sandbox, verb: &Verb) -> Vec<String> {
    let mut all = traces(sandbox);
    all.retain(|item| !item.starts_with("ids/"));
    // Those of the shared bases are nobody's here.
    if !sandbox.root().join("objects").is_symlink() {
        all.extend(objects(sandbox.root()));
    }
    all.extend(addresses(verb));
    for directory in [".", "volumes"] {
        let entries = std::fs::read_dir(sandbox.root().join(directory)).expect("the root");
        all.extend(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    all.sort();
    all
}

/// Addresses of the verb's native guest that `lo` has.
fn addresses(verb: &Verb) -> Vec<String> {
    let shown = Command::new("ip").args(["-o", "address", "show", "dev", "lo"]).output();
    let shown = String::from_utf8(shown.expect("ip runs").stdout).expect("text");
    let of_lo =
        |word: &&str| word.parse::<IpAddr>().is_ok() && shown.contains(&format!(" {word}/"));
    let words = verb.settings.iter().chain(verb.args).flat_map(|word| word.split(['=', ',']));
    words.filter(of_lo).map(|word| format!("address {word}")).collect()
}
