//! The two clocks of a record: `CLOCK_REALTIME` for people, `CLOCK_BOOTTIME` for durations.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Seconds since 1970, by `CLOCK_REALTIME`.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Seconds since the host booted, by `CLOCK_BOOTTIME`, which cannot be set.
pub fn since_boot() -> u64 {
    u64::try_from(clock_gettime(ClockId::Boottime).tv_sec).unwrap_or(0)
}
