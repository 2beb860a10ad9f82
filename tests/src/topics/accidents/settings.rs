//! T

use crate::test::Test;

pub const TESTS: &[Test] = &[];
