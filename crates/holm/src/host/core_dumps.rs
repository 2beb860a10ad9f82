//! Programs that the host runs for processes that crash, those of guests among them: a guest has
//! the host's `kernel.core_pattern`, and cannot be kept from a crash.

use std::fs::read_to_string;

use super::finding::Answer;
use super::machine::Machine;

pub(super) fn bounded(_: &Machine) -> Answer {
    let read = |file: &str| read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let settings = read("/proc/sys/kernel/core_pattern")
        .and_then(|pattern| Ok((pattern, read("/proc/sys/kernel/core_pipe_limit")?)));
    match settings {
        Ok((pattern, limit)) => judge(pattern.trim(), limit.trim()),
        Err(problem) => Answer::Partly(problem),
    }
}

/// core(5): a pattern that begins with `|` names a program, and a limit of 0 is none.
pub(super) fn judge(pattern: &str, limit: &str) -> Answer {
    let Some(program) = pattern.strip_prefix('|') else {
        return Answer::Yes("crashed processes start no program of the host".to_owned());
    };
    let program = program.split(' ').next().unwrap_or_default();
    match limit {
        "0" => Answer::Partly(format!("any number of {program} at once")),
        _ => Answer::Yes(format!("at most {limit} of {program} at once")),
    }
}
