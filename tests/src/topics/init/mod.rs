//! Process 1 of a guest: minimal init, those of distributions, and those that cannot run.

mod broken;
mod minimal;
mod others;
mod systemd;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [minimal::TESTS, systemd::TESTS, others::TESTS, broken::TESTS].concat()
}
