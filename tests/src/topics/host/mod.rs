//! The machine under the guests: what it has, and what is said when something is missing.

mod doctor;
mod filesystems;
mod lane;
mod missing;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [lane::TESTS, doctor::TESTS, missing::TESTS, filesystems::TESTS].concat()
}
