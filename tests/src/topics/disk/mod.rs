//! Private layers with limits, on each filesystem that limits them in another way.

mod filesystem;
mod image;
mod killed;
mod limits;
mod memory;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [limits::TESTS, image::TESTS, killed::TESTS, memory::TESTS].concat()
}
