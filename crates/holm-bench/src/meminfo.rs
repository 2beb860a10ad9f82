//! What the machine's memory is used for (`proc_meminfo(5)`).

use std::fs::{self, read_to_string};
use std::process::Command;

/// KiB, as the kernel says them.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub active: i64,
    pub buffers: i64,
    pub cache: i64,
    pub anon: i64,
    pub mapped: i64,
    pub slab: i64,
    pub reclaimable: i64,
    pub unreclaimable: i64,
    /// What is not available: `MemTotal` without `MemAvailable`, which counts cache that can go.
    pub used: i64,
    pub available: i64,
    pub swap: i64,
}

impl Memory {
    pub fn now() -> Result<Self, String> {
        read_to_string("/proc/meminfo")
            .map(|text| Self::parse(&text))
            .map_err(|error| format!("/proc/meminfo: {error}"))
    }

    fn parse(text: &str) -> Self {
        let kib = |key: &str| -> i64 {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        Self {
            active: kib("Active"),
            buffers: kib("Buffers"),
            cache: kib("Cached"),
            anon: kib("AnonPages"),
            mapped: kib("Mapped"),
            slab: kib("Slab"),
            reclaimable: kib("SReclaimable"),
            unreclaimable: kib("SUnreclaim"),
            used: kib("MemTotal") - kib("MemAvailable"),
            available: kib("MemAvailable"),
            swap: kib("SwapTotal") - kib("SwapFree"),
        }
    }

    /// What is used beyond `begin`; what is available stays what it is.
    pub fn since(&self, begin: &Self) -> Self {
        Self {
            active: self.active - begin.active,
            buffers: self.buffers - begin.buffers,
            cache: self.cache - begin.cache,
            anon: self.anon - begin.anon,
            mapped: self.mapped - begin.mapped,
            slab: self.slab - begin.slab,
            reclaimable: self.reclaimable - begin.reclaimable,
            unreclaimable: self.unreclaimable - begin.unreclaimable,
            used: self.used - begin.used,
            available: self.available,
            swap: self.swap - begin.swap,
        }
    }

    /// The columns of the tables in the OLS paper, in their order.
    pub fn columns(&self) -> [i64; 8] {
        [
            self.active,
            self.buffers,
            self.cache,
            self.anon,
            self.mapped,
            self.slab,
            self.reclaimable,
            self.unreclaimable,
        ]
    }
}

/// Writes everything back and empties the caches of files, directories and inodes.
pub fn drop_caches() -> Result<(), String> {
    let synced = Command::new("sync").status().map_err(|e| format!("sync: {e}"))?;
    if !synced.success() {
        return Err(format!("sync: {synced}"));
    }
    let file = "/proc/sys/vm/drop_caches";
    fs::write(file, "3").map_err(|e| format!("{file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_taken_for_another_that_begins_with_it() {
        let memory = Memory::parse(
            "MemTotal: 100 kB\nMemAvailable: 60 kB\nActive(anon): 7 kB\nActive: 9 kB\nSlab: 3 kB\n",
        );
        assert_eq!((memory.active, memory.slab, memory.used, memory.swap), (9, 3, 40, 0));
    }
}
