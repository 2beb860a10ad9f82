//! Unification of guests' private layers.

mod links;
mod pages;
mod property;
mod verb;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [verb::TESTS, links::TESTS, pages::TESTS, property::TESTS].concat()
}
