//! Programs that Holm calls.

use std::process::Command;

use super::finding::Answer;
use super::machine::Machine;
use crate::process::call_for_output;

/// The oldest CRIU that restores guests of the kernels that Holm runs on.
const CRIU_OLDEST: (u32, u32) = (4, 1);

pub(super) fn criu(_: &Machine) -> Answer {
    match call_for_output(Command::new("criu").arg("--version")) {
        Ok(criu) => judge_criu(&criu.printed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Answer::No("no criu in PATH".to_owned())
        }
        Err(error) => Answer::No(format!("criu: {error}")),
    }
}

/// Judges what `criu --version` prints.
pub(super) fn judge_criu(text: &str) -> Answer {
    let Some(release) = text.lines().find_map(|line| line.strip_prefix("Version:")).map(str::trim)
    else {
        return Answer::No("criu says no version".to_owned());
    };
    match super::kernel::parse(release) {
        Some(version) if version >= CRIU_OLDEST => Answer::Yes(release.to_owned()),
        _ => Answer::Partly(format!("{release} is older than {}.{}", CRIU_OLDEST.0, CRIU_OLDEST.1)),
    }
}
