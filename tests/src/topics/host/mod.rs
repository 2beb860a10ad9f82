//! What the host has, and what Holm says when something is missing.

mod doctor;
mod filesystems;
mod lane;
mod missing;
mod root;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [lane::TESTS, doctor::TESTS, missing::TESTS, filesystems::TESTS, root::TESTS].concat()
}
