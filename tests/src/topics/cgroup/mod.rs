//! Guests' cgroups on the real kernel, by the library itself: on hybrid hosts and on pure v2 alike.

mod group;
mod lifecycle;
mod limits;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [lifecycle::TESTS, limits::TESTS].concat()
}
