//! Guests from start to end, as a person meets them.

mod clock;
mod commands;
mod identity;
mod lifecycle;
mod limits;
mod mistakes;
mod mounts;
mod output;
mod restart;
mod rights;
mod settings;
mod several;
mod verbs;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [
        lifecycle::TESTS,
        commands::TESTS,
        verbs::TESTS,
        several::TESTS,
        settings::TESTS,
        limits::TESTS,
        mounts::TESTS,
        mistakes::TESTS,
        output::TESTS,
        rights::TESTS,
        restart::TESTS,
        clock::TESTS,
        identity::TESTS,
    ]
    .concat()
}
