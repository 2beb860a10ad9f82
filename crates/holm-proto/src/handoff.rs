//! What a launcher passes to the monitor that it becomes: its environment and its descriptors.

use core::ffi::CStr;
use core::fmt;

/// The prefix of a monitor's argv[0]; the guest's name follows. By it the program recognises that
/// it is to be a monitor.
pub const TITLE: &str = "[holm] ";

/// The variable with the [`Descriptors`].
pub const DESCRIPTORS: &CStr = c"MONITOR_FDS";

/// The variable with the path of the Holm root.
pub const ROOT: &CStr = c"MONITOR_ROOT";

/// The variable with the path of the `holm` program that takes over when init has ended.
pub const HOLM: &CStr = c"MONITOR_HOLM";

/// The variable with what the responder offers, a [`crate::Lease`] as text.
pub const LEASE: &CStr = c"MONITOR_LEASE";

/// What a monitor is given descriptors of: the keys in [`DESCRIPTORS`].
pub mod key {
    /// Init, as a pidfd.
    pub const INIT: &str = "init";
    /// The guest's cgroup.
    pub const CGROUP: &str = "cgroup";
    /// The guest's directory in the Holm root.
    pub const DIRECTORY: &str = "directory";
    /// The socket at which clients connect.
    pub const LISTENER: &str = "listener";
    /// The lock that keeps the base's image mounted; may be missing.
    pub const IMAGE: &str = "image";
    /// The socket at which init says that it is ready; may be missing.
    pub const NOTIFY: &str = "notify";
    /// The master of the guest's console; may be missing.
    pub const CONSOLE: &str = "console";
    /// The packet socket on the guest's network; may be missing.
    pub const RESPONDER: &str = "responder";
    /// The netlink socket that tells what the guest asks for its network; may be missing.
    pub const REQUESTS: &str = "requests";
    /// The netlink socket that tells the connections which the guest opens; may be missing.
    pub const FLOWS: &str = "flows";
    /// No descriptor, but the number of the group in which they are told (NFLOG).
    pub const FLOW_GROUP: &str = "flow-group";
    /// The directory in which they are recorded; may be missing.
    pub const FLOW_DIRECTORY: &str = "flow-directory";
}

/// The numbers of descriptors by their keys; as text `key=number key=number`.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors<'a>(pub &'a [(&'a str, i32)]);

impl fmt::Display for Descriptors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, number)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { " " };
            write!(f, "{separator}{key}={number}")?;
        }
        Ok(())
    }
}

/// The descriptor of `key` in a text of [`Descriptors`]. On bytes: text has more to it than each
/// monitor has room for.
pub fn descriptor(text: &[u8], key: &str) -> Option<i32> {
    text.split(|byte| *byte == b' ').find_map(|pair| {
        let digits = pair.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?;
        let add = |number: i32, digit: &u8| {
            let value = i32::from(digit.wrapping_sub(b'0'));
            if value < 10 { number.checked_mul(10)?.checked_add(value) } else { None }
        };
        if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Descriptors, descriptor, key};
    use std::string::ToString;

    #[test]
    fn descriptors_are_read_as_they_are_written() {
        let text = Descriptors(&[(key::INIT, 5), (key::CGROUP, 16), (key::NOTIFY, 7)]).to_string();
        assert_eq!(text, "init=5 cgroup=16 notify=7");
        assert_eq!(descriptor(text.as_bytes(), key::INIT), Some(5));
        assert_eq!(descriptor(text.as_bytes(), key::CGROUP), Some(16));
        assert_eq!(descriptor(text.as_bytes(), key::CONSOLE), None);
        assert_eq!(descriptor(b"init=x cgroup=", key::INIT), None);
        assert_eq!(descriptor(b"init=x cgroup=", key::CGROUP), None);
        assert_eq!(descriptor(b"init=2147483647", key::INIT), Some(i32::MAX));
        assert_eq!(descriptor(b"init=2147483648", key::INIT), None);
    }
}
