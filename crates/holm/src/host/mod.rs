//! What this kernel and this machine can do: the probes behind `holm doctor`, and behind the errors of other verbs.
//!
//! Features are tried, not guessed from the kernel's version: distributions backport, and machines are built without
//! parts. [`FEATURES`] is the table of them.

mod access;
mod cgroups;
mod child;
mod disk;
mod features;
mod ids;
mod kernel;
mod layers;
mod network;
mod process;
mod scratch;
mod tools;

use std::path::{Path, PathBuf};

use crate::step::injected;

pub use features::{FEATURES, Feature};
use scratch::Scratch;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use {ids::overlapping, process::own_cgroup};

/// How a feature stands on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Ok,
    /// It is there in part, or in a worse way.
    Degraded,
    /// It is not there.
    Missing,
}

/// What a probe found, with a sentence that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Yes(String),
    Partly(String),
    No(String),
}

/// One line of `holm doctor`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The feature's name.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// Whether no guest can start without it.
    pub needed: bool,
    /// What its lack costs the user. Empty when the feature is there.
    pub cost: &'static str,
    /// A command, or what else to do, that mends it. Empty when the feature is there.
    pub remedy: &'static str,
}

/// What the probes look at besides the kernel.
#[derive(Debug)]
struct Machine {
    /// The Holm root, or the nearest folder above it that exists.
    root: PathBuf,
    /// A folder on the root's filesystem, or why there is none.
    scratch: Result<Scratch, String>,
}

/// Looks at everything. `root` is the Holm root, which need not exist.
///
/// Must be called from a process with one thread: some probes run in a clone of it.
pub fn probe_all(root: &Path) -> Vec<Finding> {
    let machine = Machine::new(root);
    FEATURES.iter().map(|feature| look(feature, &machine)).collect()
}

/// Looks at the one feature `name`, of [`FEATURES`], for a verb that failed for want of it.
pub fn probe(name: &str, root: &Path) -> Option<Finding> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    Some(look(feature, &Machine::new(root)))
}

/// Whether a test wants this host to do without `feature` (`HOLM_PROBE_NO=name,name`).
fn forced_no(feature: &str) -> bool {
    injected("HOLM_PROBE_NO").is_some_and(|list| listed(&list, feature))
}

/// The first feature no guest can start without that a test takes away; no probe is made.
pub fn forced_lack() -> Option<Finding> {
    let list = injected("HOLM_PROBE_NO")?;
    let taken = FEATURES.iter().find(|feature| feature.needed && listed(&list, feature.name))?;
    Some(taken.finding(forced()))
}

/// The first feature no guest can start without that this host lacks, for a start that has failed.
pub fn lack(root: &Path) -> Option<Finding> {
    probe_all(root).into_iter().find(|finding| finding.needed && finding.state == State::Missing)
}

/// Why the filesystem that `root` is on cannot hold guests, if it cannot. One system call where it is of a kind that
/// Holm is tested on; elsewhere it is tried out.
pub fn unfit(root: &Path) -> Option<Finding> {
    let there = root.ancestors().find(|dir| dir.is_dir())?;
    if disk::is_tested(there) {
        return None;
    }
    probe("filesystem", root).filter(|finding| finding.state == State::Missing)
}

fn forced() -> Answer {
    Answer::No("taken as missing, because HOLM_PROBE_NO names it".to_owned())
}

fn listed(list: &str, feature: &str) -> bool {
    list.split(',').any(|name| name.trim() == feature)
}

fn look(feature: &Feature, machine: &Machine) -> Finding {
    let answer = if forced_no(feature.name) { forced() } else { (feature.probe)(machine) };
    feature.finding(answer)
}

impl Feature {
    fn finding(&self, answer: Answer) -> Finding {
        let whole = (self.cost, self.remedy);
        let (state, detail, (cost, remedy)) = match answer {
            Answer::Yes(detail) => (State::Ok, detail, ("", "")),
            Answer::Partly(detail) => (State::Degraded, detail, self.partly.unwrap_or(whole)),
            Answer::No(detail) => (self.without, detail, whole),
        };
        let needed = self.needed;
        Finding { name: self.name, state, detail, needed, cost, remedy }
    }
}

impl Machine {
    fn new(root: &Path) -> Self {
        let there = root.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
        Self { root: there.to_owned(), scratch: Scratch::new(there) }
    }

    /// The scratch folder, for probes that can say no more without one.
    fn scratch(&self) -> Result<&Scratch, String> {
        self.scratch.as_ref().map_err(Clone::clone)
    }
}

impl Answer {
    /// Yes or no, as a probe that may fail says.
    fn from(result: Result<String, String>) -> Self {
        match result {
            Ok(detail) => Self::Yes(detail),
            Err(detail) => Self::No(detail),
        }
    }
}

#[cfg(test)]
mod tests;
