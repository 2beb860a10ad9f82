//! Bad input and accidents: a clear error, nothing left behind, nothing lost.

pub mod killed;
pub mod looks;
mod names;
mod power;
pub mod races;
mod restarts;
mod room;
mod settings;
mod upgrade;
mod waits;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [
        names::TESTS,
        settings::TESTS,
        races::TESTS,
        room::TESTS,
        restarts::TESTS,
        upgrade::TESTS,
        killed::TESTS,
        power::TESTS,
        looks::TESTS,
        waits::TESTS,
    ]
    .concat()
}
