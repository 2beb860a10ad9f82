//! Walks over the system calls of a verb: the command is killed, or the call fails, at each of
//! them. Afterwards the next command repairs, nothing is left, a running guest runs on, and the
//! error names its reason.
//!
//! The usual run takes samples; `make walk` takes every call. `cost` counts the calls of a verb.

mod attach;
mod check;
mod cost;
mod single;
mod strace;
mod verb;
mod verbs;

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [verbs::TESTS, single::TESTS, cost::TESTS].concat()
}
