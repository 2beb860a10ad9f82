//! One directory or file per topic. A test is registered in the table `TESTS` of its file; the
//! compiler warns of one that is not, because it is dead code.

mod accidents;
mod bases;
mod cgroup;
mod completion;
mod descriptors;
mod disk;
mod documents;
mod fsck;
mod guest;
mod host;
mod init;
mod monitor;
mod mounts;
mod namespaces;
mod neighbours;
pub mod net;
mod security;
mod unify;
mod volumes;
mod walk;

use crate::options::Lane;
use crate::test::Test;

/// Every test, in the order of the topics.
pub fn all() -> Vec<Test> {
    [
        host::tests(),
        bases::tests(),
        cgroup::tests(),
        namespaces::TESTS.to_vec(),
        mounts::TESTS.to_vec(),
        net::tests(),
        security::TESTS.to_vec(),
        descriptors::TESTS.to_vec(),
        init::tests(),
        guest::tests(),
        monitor::tests(),
        accidents::tests(),
        completion::TESTS.to_vec(),
        disk::tests(),
        unify::tests(),
        fsck::TESTS.to_vec(),
        volumes::TESTS.to_vec(),
        documents::TESTS.to_vec(),
        walk::tests(),
        neighbours::TESTS.to_vec(),
    ]
    .concat()
}

/// The shared bases that tests of the VM lanes need. On the host a base is made when a test needs
/// it.
pub fn bases(slow: bool) -> Vec<&'static str> {
    let tests = all().into_iter().filter(|test| test.left_out(Lane::Vm, slow).is_none());
    let mut bases: Vec<_> = tests.flat_map(|test| test.bases).copied().collect();
    bases.sort_unstable();
    bases.dedup();
    bases
}
