use std::path::Path;

use super::disk;
use super::features::{FEATURES, FILESYSTEM, Feature};
use super::finding::{Answer, Finding, State};
use super::machine::Machine;
use crate::step::injected;

/// Probes every feature. `root` is the Holm root, which need not exist.
///
/// Must be called from a process with one thread: some probes run in a clone of it.
pub fn probe_all(root: &Path) -> Vec<Finding> {
    let machine = Machine::new(root);
    FEATURES.iter().map(|feature| look(feature, &machine)).collect()
}

/// Probes the one feature `name` of [`FEATURES`], for a verb that may have failed without it.
pub fn probe(name: &str, root: &Path) -> Option<Finding> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    Some(look(feature, &Machine::new(root)))
}

/// The first feature no guest can start without that this host does not have, for a start that has
/// failed.
pub fn missing_requirement(root: &Path) -> Option<Finding> {
    probe_all(root).into_iter().find(|finding| finding.needed && finding.state == State::Missing)
}

/// Why the filesystem that `root` is on cannot hold guests, if it cannot. One system call where it
/// is of a kind that Holm is tested on; any other is tried out.
pub fn unsupported_root(root: &Path) -> Option<Finding> {
    let existing = root.ancestors().find(|dir| dir.is_dir())?;
    if disk::is_tested(existing) {
        return None;
    }
    probe(FILESYSTEM, root).filter(|finding| finding.state == State::Missing)
}

/// The first feature no guest can start without that an injected fault takes away; no probe is
/// made.
pub fn forced_missing() -> Option<Finding> {
    let list = injected("HOLM_PROBE_NO")?;
    let feature =
        FEATURES.iter().find(|feature| feature.needed && is_listed(&list, feature.name))?;
    Some(feature.finding(forced()))
}

fn look(feature: &Feature, machine: &Machine) -> Finding {
    let forced_missing =
        injected("HOLM_PROBE_NO").is_some_and(|list| is_listed(&list, feature.name));
    feature.finding(if forced_missing { forced() } else { (feature.probe)(machine) })
}

fn forced() -> Answer {
    Answer::No("taken as missing, because HOLM_PROBE_NO names it".to_owned())
}

/// Whether `list`, names with commas between them, names a feature.
pub(super) fn is_listed(list: &str, feature: &str) -> bool {
    list.split(',').any(|name| name.trim() == feature)
}
