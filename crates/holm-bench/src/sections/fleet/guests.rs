use crate::build::Holm;
use crate::free::free;
use crate::rounds::in_one_line;
use crate::sections::guests::pids;

/// Whether the guests of a fleet have their files in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each has copies of its own of all files.
    Separate,
    /// As Holm creates them.
    Unified,
    /// The same, with a setting of journald that a hoster may choose.
    SmallJournal,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Unified => "unified",
            Self::SmallJournal => "small-journal",
        }
    }

    /// What a guest does in a first start of its own, before its system boots.
    fn command(self) -> Option<&'static str> {
        match self {
            Self::Separate => Some(COPY_ALL),
            Self::Unified => None,
            Self::SmallJournal => Some(LIMIT_JOURNAL),
        }
    }
}

/// No more guests are made when less than this is free on the disk, in bytes.
const DISK_RESERVE: u64 = 6 << 30;

/// Writes to each file of the base without changing it, which gives the guest a copy of its own.
const COPY_ALL: &str = "\
find / -xdev -type f -size +0 -exec sh -c 'for file; do : >>\"$file\"; done' sh {} +";

/// Files of the journal are allocated as a whole, 8 MiB if nothing is set (`journald.conf(5)`).
const LIMIT_JOURNAL: &str = "\
mkdir -p /etc/systemd/journald.conf.d
printf '[Journal]\\nSystemMaxFileSize=1M\\n' >/etc/systemd/journald.conf.d/small.conf";

/// Guests of the base `servers`; stopped and removed at the end, whatever happens.
pub struct Fleet<'a> {
    holm: &'a Holm,
    kind: Kind,
    /// Of each guest.
    settings: &'static [&'static str],
    pub names: Vec<String>,
    /// Bytes that were free on the disk before the first was made.
    free: u64,
}

impl<'a> Fleet<'a> {
    pub fn new(
        holm: &'a Holm,
        kind: Kind,
        settings: &'static [&'static str],
    ) -> Result<Self, String> {
        Ok(Self { holm, kind, settings, names: Vec::new(), free: free(&holm.root)? })
    }

    /// Creates guests up to `count`, or until the disk is nearly full: then it says so.
    pub fn create_up_to(&mut self, count: usize) -> Result<Option<String>, String> {
        while self.names.len() < count {
            if free(&self.holm.root)? < DISK_RESERVE {
                return Ok(Some("less than 6 GiB were free on the disk".to_owned()));
            }
            self.create()?;
        }
        Ok(None)
    }

    /// Creates one more guest; its name.
    fn create(&mut self) -> Result<String, String> {
        let name = self.holm.guest(&format!("{}-{}", self.kind.name(), self.names.len()));
        self.names.push(name.clone());
        let create = [&["create", &name, "--base", "servers"], self.settings].concat();
        let Some(command) = self.kind.command() else {
            self.holm.run(&create)?;
            return Ok(name);
        };
        let minimal = ["--set", "net.mode=none", "--set", "init=minimal"];
        let command = ["--", "/bin/sh", "-c", command];
        self.holm.run(&[&create, &minimal[..], &command].concat())?;
        self.holm.run(&["start", &name])?;
        self.holm.run(&["wait", &name])?;
        self.holm.run(&["unset", &name, "net.mode", "init", "command"])?;
        Ok(name)
    }

    /// Starts guests at once, and waits until their systems are up.
    pub fn start(&self, names: &[String]) -> Result<(), String> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let started = self.holm.run(&[&["start", "--wait=3600s"], &names[..]].concat());
        started.map(drop).map_err(|e| in_one_line(&e))
    }

    /// What the guests have taken of the disk's room, in bytes; what they share by reflinks, once.
    pub fn disk(&self) -> Result<u64, String> {
        Ok(self.free.saturating_sub(free(&self.holm.root)?))
    }
}

/// What processes of guests have in memory, in KiB.
#[derive(Default)]
pub struct Resident {
    /// Each page as often as it is mapped.
    pub rss: i64,
    /// Each page once, split among those that have it mapped (`proc_pid_smaps(5)`).
    pub pss: i64,
}

impl Resident {
    /// Of all guests' processes together.
    pub fn now() -> Self {
        let mut all = Self::default();
        for pid in pids() {
            let read = |file: &str| {
                std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
            };
            if !read("cgroup").lines().any(|line| line.contains("/bench-")) {
                continue;
            }
            let text = read("smaps_rollup");
            let kib = |key: &str| -> i64 {
                let line = text.lines().find_map(|line| line.strip_prefix(key));
                line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
            };
            all.rss += kib("Rss:");
            all.pss += kib("Pss:");
        }
        all
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        self.holm.remove_guests(&self.names);
    }
}
