//! The table of all keys.

mod contents;
mod guest;
mod net;

use super::key::Key;

const COUNT: usize = guest::KEYS.len() + net::KEYS.len() + contents::KEYS.len();

/// All keys, in the order of the documentation.
pub(super) static KEYS: [Key; COUNT] = {
    let mut all = [guest::KEYS[0]; COUNT];
    let (mut at, mut group) = (0, 0);
    let groups: [&[Key]; 3] = [&guest::KEYS, &net::KEYS, &contents::KEYS];
    while group < groups.len() {
        let mut key = 0;
        while key < groups[group].len() {
            all[at] = groups[group][key];
            at += 1;
            key += 1;
        }
        group += 1;
    }
    all
};
