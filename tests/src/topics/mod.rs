//! One file per topic; each has a table `TESTS`.

mod accidents;
mod bases;
mod cgroup;
mod completion;
mod doctor;
mod guest;
mod inits;
mod machine;
mod managers;
mod monitor;
mod net;
mod security;
mod systemd;

use crate::options::Lane;
use crate::test::Test;

/// Every test, in the order of the topics.
pub fn all() -> Vec<Test> {
    [
        machine::TESTS,
        &bases::tests(),
        doctor::TESTS,
        completion::TESTS,
        cgroup::life::TESTS,
        cgroup::limits::TESTS,
        cgroup::live::TESTS,
        monitor::TESTS,
        net::TESTS,
        security::TESTS,
        systemd::TESTS,
        inits::TESTS,
        managers::TESTS,
        &accidents::tests(),
        guest::clock::TESTS,
        guest::inside::TESTS,
        guest::life::TESTS,
        guest::limits::TESTS,
        guest::monitor::TESTS,
        guest::mounts::TESTS,
        guest::network::TESTS,
        guest::restart::TESTS,
        guest::rights::TESTS,
        guest::settings::TESTS,
        guest::several::TESTS,
        guest::verbs::TESTS,
    ]
    .concat()
}

/// The shared bases that the emulated machines' tests ask for, each once. The host's tests make theirs when they ask.
pub fn bases(slow: bool) -> Vec<&'static str> {
    let tests = all().into_iter().filter(|test| test.left_out(Lane::Vm, slow).is_none());
    let mut bases: Vec<_> = tests.flat_map(|test| test.bases).copied().collect();
    bases.sort_unstable();
    bases.dedup();
    bases
}
