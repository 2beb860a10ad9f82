//! The log of runs.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::base;
use super::error::Error;
use crate::Failed;
use crate::config::{NetMode, Publish};
use crate::failed::{make_directories, unless_gone};
use crate::pool::{Name, Pool};
use crate::record::{Network, now, ports};

const RUNS: &str = "runs";
const OLD_RUNS: &str = "runs.1";

/// Where `runs` becomes `runs.1`, in bytes.
const LIMIT: u64 = 4 << 20;

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Seconds since 1970.
    at: u64,
    guest: String,
    /// What the guest has from then on; nothing: its run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has: Option<Has>,
}

/// What a guest has of the host's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Has {
    /// Addresses, with all their ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Published ports.
    #[serde(with = "ports::as_text")]
    pub ports: Vec<Publish>,
    /// All addresses of the host, with others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

impl Has {
    /// What a guest with this network has; `None` if that is nothing.
    pub fn of(network: &Network) -> Option<Self> {
        let host = network.mode == NetMode::Host;
        let has = Self { addresses: network.own_addresses(), ports: network.publish.clone(), host };
        let is_nothing = network.mode == NetMode::None && has.addresses.is_empty();
        (!is_nothing).then_some(has)
    }
}

/// Records what a guest has from now on. Before it can use it, so that no time is missing.
pub fn begin(pool: &Pool, guest: &Name, network: &Network) -> Result<(), Error> {
    match Has::of(network) {
        None => Ok(()),
        has => append(pool, &Line { at: now(), guest: guest.to_string(), has }),
    }
}

/// Records that a guest with this network has ended.
pub fn end(pool: &Pool, guest: &Name, network: &Network) -> Result<(), Error> {
    match Has::of(network) {
        None => Ok(()),
        Some(_) => append(pool, &Line { at: now(), guest: guest.to_string(), has: None }),
    }
}

fn append(pool: &Pool, line: &Line) -> Result<(), Error> {
    let directory = base(pool);
    // On a line of its own, even if a full disk has cut off the one before.
    let text = format!("\n{}\n", serde_json::to_string(line).unwrap_or_default());
    let file = match open(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(&directory, 0o700)
                .map_err(|error| Failed::new("make the directory", &directory, error))?;
            open(&directory)
        }
        opened => opened,
    };
    let path = directory.join(RUNS);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if file.metadata()?.len() > LIMIT { rotate(&directory, &file) } else { Ok(()) }
    });
    Ok(written.map_err(|error| Failed::new("write to", &path, error))?)
}

fn open(directory: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(directory.join(RUNS))
}

/// Makes `runs.1` of `runs`, once: another command may have done so.
fn rotate(directory: &Path, full: &File) -> io::Result<()> {
    full.lock()?;
    let path = directory.join(RUNS);
    match unless_gone(std::fs::metadata(&path))? {
        Some(there) if there.ino() == full.metadata()?.ino() => {
            std::fs::rename(&path, directory.join(OLD_RUNS))
        }
        _ => Ok(()),
    }
}

/// What a guest has had for a time.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub guest: String,
    pub has: Has,
    /// Seconds since 1970.
    pub from: u64,
    /// `None` if that is not recorded: it goes on, or nobody was left to record it.
    pub until: Option<u64>,
}

/// All that is recorded, in the order in which it began.
pub fn read(pool: &Pool) -> Result<Vec<Run>, Error> {
    let mut text = String::new();
    for name in [OLD_RUNS, RUNS] {
        let path = base(pool).join(name);
        let bytes = unless_gone(std::fs::read(&path));
        let bytes = bytes.map_err(|error| Failed::new("read", &path, error))?.unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    Ok(parse(&text))
}

/// A line that is none, such as one that a full disk has cut off, is skipped.
fn parse(text: &str) -> Vec<Run> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let mut runs: Vec<Run> = Vec::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    for Line { at, guest, has } in lines {
        // A guest runs once at a time, so this ends what it has had before.
        if let Some(before) = open.remove(&guest) {
            runs[before].until = Some(at);
        }
        if let Some(has) = has {
            open.insert(guest.clone(), runs.len());
            runs.push(Run { guest, has, from: at, until: None });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_guest_ends_what_it_has_had() {
        let text = r#"{"at":10,"guest":"web","has":{"addresses":["10.97.0.1"],"ports":"8080:80/tcp"}}
{"at":11,"guest":"db","has":{"addresses":["192.0.2.10"],"ports":""}}
{"at":12,"guest":"db","has":{"addresses":["192.0.2.10","192.0.2.11"],"ports":""}}
{"at":13,"guest":"web"}
{"at":14,"gue
{"at":15,"guest":"web"}
{"at":16,"guest":"shared","has":{"ports":"","host":true}}
"#;
        let runs = parse(text);
        let times = |run: &Run| (run.guest.clone(), run.from, run.until);
        let expected = [
            ("web".to_owned(), 10, Some(13)),
            ("db".to_owned(), 11, Some(12)),
            ("db".to_owned(), 12, None),
            ("shared".to_owned(), 16, None),
        ];
        assert_eq!(runs.iter().map(times).collect::<Vec<_>>(), expected);
        assert_eq!(runs[0].has.ports.len(), 1);
        assert_eq!(runs[2].has.addresses.len(), 2);
        assert!(runs[3].has.host && !runs[0].has.host);
    }
}
