//! Private layers with limits, on each filesystem that limits them in another way.

mod filesystem;
mod image;
mod killed;
mod limits;
mod memory;
mod objects;
mod plain;
mod read_only;
mod shared_image;
mod volumes;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [
        limits::TESTS,
        image::TESTS,
        killed::TESTS,
        memory::TESTS,
        objects::TESTS,
        plain::TESTS,
        read_only::TESTS,
        shared_image::TESTS,
        volumes::TESTS,
    ]
    .concat()
}
