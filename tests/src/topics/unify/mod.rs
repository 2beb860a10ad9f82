//! Unification of guests' private layers.

mod property;
mod verb;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [verb::TESTS, property::TESTS].concat()
}
