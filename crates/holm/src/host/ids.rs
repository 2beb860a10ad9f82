//! User id ranges, and what the kernel allows one user or all together.

use std::fs::read_to_string;
use std::ops::Range;

use super::finding::Answer;
use super::machine::Machine;
use crate::pool::MAX_INSTANCE;

/// Ids that Holm roots give to guests.
const OURS: Range<u64> = (1 << 26)..((MAX_INSTANCE as u64 + 1) << 26);

pub(super) fn ranges(_: &Machine) -> Answer {
    let mut others = Vec::new();
    for file in ["/etc/subuid", "/etc/subgid"] {
        let text = read_to_string(file).unwrap_or_default();
        others.extend(overlapping(&text).into_iter().map(|line| format!("{file} gives {line}")));
    }
    if others.is_empty() {
        Answer::Yes(format!("{} to {} are not given to any user", OURS.start, OURS.end - 1))
    } else {
        Answer::Partly(others.join(", "))
    }
}

/// Lines of an `/etc/subuid` whose range overlaps Holm's.
pub fn overlapping(text: &str) -> Vec<&str> {
    let meets = |line: &&str| {
        let mut fields = line.trim().split(':').skip(1).map(str::parse::<u64>);
        match (fields.next(), fields.next()) {
            (Some(Ok(first)), Some(Ok(count))) => {
                first < OURS.end && first.saturating_add(count) > OURS.start
            }
            _ => false,
        }
    };
    text.lines().filter(meets).collect()
}

pub(super) fn inotify(_: &Machine) -> Answer {
    // A Debian guest's systemd and its services use about 20; 128 is the kernel's own default.
    at_least("/proc/sys/fs/inotify/max_user_instances", 128, "instances for each user")
}

pub(super) fn keys(_: &Machine) -> Answer {
    at_least("/proc/sys/kernel/keys/maxkeys", 200, "for each user")
}

pub(super) fn aio_contexts(_: &Machine) -> Answer {
    // Beyond that the memory of the contexts, which is charged to the guest, ends it first.
    at_least("/proc/sys/fs/aio-max-nr", 1 << 30, "events for all guests and the host")
}

pub(super) fn terminals(_: &Machine) -> Answer {
    at_least("/proc/sys/kernel/pty/max", 16384, "for all guests and the host")
}

/// Where a setting has several values, the last.
pub(super) fn at_least(file: &str, least: u64, of_what: &str) -> Answer {
    let number = |text: String| text.split_whitespace().last().unwrap_or_default().parse::<u64>();
    match read_to_string(file).map(number) {
        Ok(Ok(value)) if value >= least => Answer::Yes(format!("{value} {of_what}")),
        Ok(Ok(value)) => Answer::Partly(format!("{value} {of_what}, less than {least}")),
        Ok(Err(_)) => Answer::Partly(format!("{file} holds no number")),
        Err(error) => Answer::Partly(format!("{file}: {error}")),
    }
}
