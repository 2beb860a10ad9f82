//! Random changes to trees of files, the same in several places, and a comparison of two trees: one
//! is a guest's, the other on a plain filesystem.

mod change;
mod compare;

use std::path::{Path, PathBuf};

pub use change::{ACL, CAPABILITY};
pub use compare::compare;

use change::Change;

/// A small generator of numbers (xorshift64*), so that a seed names a sequence of changes.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Close seeds must not give close sequences; zero would stay zero.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or(0) % end.max(1)
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Makes `count` changes in each of `roots`; what they are, the seed and the last root say. Prints
/// every change that has not the same result everywhere.
pub fn mutate(seed: u64, count: u64, links: bool, roots: &[&str]) -> bool {
    let mut random = Random::new(seed);
    let roots: Vec<&Path> = roots.iter().map(Path::new).collect();
    let Some(model) = roots.last() else { return false };
    let mut same = true;
    for number in 0..count {
        let files = paths(model);
        let change = Change::choose(&mut random, &files, links);
        let results: Vec<String> = roots.iter().map(|root| change.make(root, number)).collect();
        if results.iter().any(|result| *result != results[0]) {
            println!("HOLE change {number} of seed {seed}: {change:?}: {results:?}");
            same = false;
        }
    }
    same
}

/// All files below `root`, by their paths from there, sorted; directories before what is in them.
fn paths(root: &Path) -> Vec<PathBuf> {
    let mut all = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(dir) = all.get(next).cloned() {
        next += 1;
        let here = root.join(&dir);
        if !here.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let Ok(entries) = here.read_dir() else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        all.extend(names.into_iter().map(|name| dir.join(name)));
    }
    all.remove(0);
    all
}
