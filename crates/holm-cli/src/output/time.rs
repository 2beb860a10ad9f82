use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

/// A time of `CLOCK_REALTIME` in UTC, as RFC 3339 writes it: `2026-11-22T19:03:25Z`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("type" = "time")))]
pub struct Time(String);

impl Time {
    /// A time in seconds since 1970.
    pub fn new(seconds: u64) -> Self {
        // The last second that RFC 3339 can write.
        let seconds = seconds.min(253_402_300_799);
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        Self(humantime::format_rfc3339_seconds(time).to_string())
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_rfc_3339() {
        assert_eq!(Time::new(0).0, "1970-01-01T00:00:00Z");
        assert_eq!(Time::new(1_700_000_000).0, "2023-11-14T22:13:20Z");
        assert_eq!(Time::new(u64::MAX).0, "9999-12-31T23:59:59Z");
    }
}
