//! Integration tests: they run the built `holm` command as a user would, as root, each in a Holm
//! root of its own, and look at the host before and after. The same static program runs on the
//! development machine and in the VM lanes.

#![forbid(unsafe_code)]

mod command;
mod durations;
mod fixture;
mod guest;
mod host;
mod options;
mod process;
mod sandbox;
mod source;
mod terminal;
mod test;
mod topics;
mod traces;

use libtest_mimic::{Arguments, Conclusion, Trial};
use options::Options;
use std::iter::repeat_n;
use std::process::ExitCode;
use std::sync::Arc;
use test::Test;

fn main() -> ExitCode {
    let (options, mut harness) = match Options::from_args(std::env::args().collect()) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("holm-tests: {problem}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if options.prepare {
        return prepare(&options);
    }
    test::remember_where_panics_are();
    harness.test_threads.get_or_insert_with(tests_at_once);
    let options = Arc::new(options);
    let listing = harness.list;
    let before = host::Snapshot::take();

    let (alone, together): (Vec<_>, Vec<_>) =
        topics::all().into_iter().partition(|test| test.alone);
    let run = |tests: Vec<Test>, harness: &Arguments| {
        let tests = tests.into_iter().flat_map(|test| repeat_n(test, options.repeat));
        libtest_mimic::run(harness, tests.map(|test| test.into_trial(&options)).collect())
    };
    let mut conclusions = vec![run(together, &harness)];
    conclusions.push(run(alone, &Arguments { test_threads: Some(1), ..harness }));
    if !listing {
        durations::tell();
        conclusions.push(check_host(&options, before));
    }
    let failed = conclusions.iter().find(|conclusion| conclusion.has_failed());
    failed.map_or(ExitCode::SUCCESS, Conclusion::exit_code)
}

/// How many tests run at once unless `--test-threads` says: they wait half of the time, so twice as
/// many as CPUs; bounded, as their Holm roots take identities that the machine has few of.
fn tests_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| (2 * cpus.get()).min(12))
}

/// The last test: the host is as it was before all of them.
fn check_host(options: &Options, before: host::Snapshot) -> Conclusion {
    let scratch = options.scratch.clone();
    let trial = Trial::test("host::is_as_it_was_before_all_tests", move || {
        let left = host::Snapshot::take().since(&before, &scratch);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left on the host:\n  {}", left.join("\n  ")).into())
        }
    });
    libtest_mimic::run(&Arguments::default(), vec![trial])
}

/// Makes the shared bases for machines that have no network.
fn prepare(options: &Options) -> ExitCode {
    for base in topics::bases(options.slow) {
        if let Err(problem) = fixture::base(options, base) {
            eprintln!("holm-tests: {problem}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
