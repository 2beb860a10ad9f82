//! Reading many files on several CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// The size of a buffer. A body that fits into it is not written if the store has it already.
pub const PIECE: usize = 1 << 20;

/// What a thread reads and writes files with.
#[derive(Debug)]
pub struct Buffers {
    /// For reading; as long as a piece.
    pub read: Vec<u8>,
    /// What is written next.
    pub write: Vec<u8>,
}

impl Buffers {
    pub fn new() -> Self {
        Self { read: vec![0; PIECE], write: Vec::new() }
    }
}

/// How many threads work at once.
pub fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` with each item and buffers, on as many threads as there are CPUs. The results are
/// in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T, &mut Buffers) -> R + Sync) -> Vec<R> {
    let workers = workers().min(items.len());
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        let mut buffers = Buffers::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item, &mut buffers);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            // If the host has no room for another, this one does all.
            let _ = Builder::new().spawn_scoped(scope, worker);
        }
        worker();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..1000).collect();
        let doubled = super::map(&items, |item, buffers| {
            assert!(!buffers.read.is_empty());
            item * 2
        });
        assert!(doubled.iter().zip(&items).all(|(double, item)| *double == item * 2));
        assert_eq!(super::map(&[], |item: &u64, _| *item), Vec::<u64>::new());
    }
}
