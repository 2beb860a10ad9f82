//! How many pseudo-terminals guests can still have.

use std::fs;

use super::{Error, Result};

/// Refuses a start for which the host has no pty left. The console of the guest itself counts
/// until it is stopped, but between that and its start another guest may take its place.
pub fn check_console() -> Result<()> {
    no_terminal().map_or(Ok(()), Err)
}

/// The error of a guest that can have no pty, if that is so.
pub(super) fn no_terminal() -> Option<Error> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let (open, max, reserve) = (read("nr")?, read("max")?, read("reserve")?);
    is_exhausted(open, max, reserve).then_some(Error::NoTerminal { open, max, reserve })
}

/// Whether a devpts in another mount namespace than the host's gets no further pty: the reserve is
/// the host's, and the kernel counts the new one before it compares.
fn is_exhausted(open: u64, max: u64, reserve: u64) -> bool {
    open + 1 >= max.saturating_sub(reserve)
}

#[cfg(test)]
mod tests {
    use super::is_exhausted;

    #[test]
    fn the_reserve_is_the_hosts() {
        for (open, max, reserve, exhausted) in [
            (0, 4096, 1024, false),
            (3070, 4096, 1024, false),
            (3071, 4096, 1024, true),
            (0, 1024, 1024, true),
            (0, 10, 1024, true),
        ] {
            assert_eq!(is_exhausted(open, max, reserve), exhausted, "{open} {max} {reserve}");
        }
    }
}
