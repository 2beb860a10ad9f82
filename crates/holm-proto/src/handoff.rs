//! What a launcher passes to the monitor that it becomes: its environment and its descriptors.

use core::ffi::CStr;
use core::fmt;

/// What the monitor's name in the list of processes begins with; the guest's name follows. It is the
/// program's first argument, and chooses its role.
pub const TITLE: &str = "[holm] ";

/// The variable with the [`Descriptors`].
pub const DESCRIPTORS: &CStr = c"MONITOR_FDS";

/// The variable with the path of the Holm root.
pub const ROOT: &CStr = c"MONITOR_ROOT";

/// The variable with the path of the `holm` program that takes over when init has ended.
pub const HOLM: &CStr = c"MONITOR_HOLM";

/// The variable with what the responder offers, a [`crate::Lease`] as text.
pub const LEASE: &CStr = c"MONITOR_LEASE";

/// The numbers of the descriptors that a monitor is given, and init's pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Init's pid on the host, for people who look at the monitor's environment.
    pub pid: i32,
    /// Init's pidfd.
    pub init: i32,
    /// The guest's control group.
    pub cgroup: i32,
    /// The guest's directory in the Holm root.
    pub directory: i32,
    /// The socket at which clients connect.
    pub listener: i32,
    /// The socket at which init says that it is ready.
    pub notify: Option<i32>,
    /// The master of the guest's console.
    pub console: Option<i32>,
    /// The packet socket on the guest's network.
    pub responder: Option<i32>,
}

const KEYS: [&str; 8] =
    ["pid", "init", "cgroup", "directory", "listener", "notify", "console", "responder"];

impl Descriptors {
    /// Reads what its `Display` writes; `None` when something is missing that a monitor needs.
    pub fn parse(text: &str) -> Option<Descriptors> {
        let mut found = [None; KEYS.len()];
        for (key, number) in text.split(' ').filter_map(|pair| pair.split_once('=')) {
            if let Some(at) = KEYS.iter().position(|known| *known == key) {
                found[at] = number.parse().ok();
            }
        }
        let [pid, init, cgroup, directory, listener, notify, console, responder] = found;
        Some(Descriptors {
            pid: pid?,
            init: init?,
            cgroup: cgroup?,
            directory: directory?,
            listener: listener?,
            notify,
            console,
            responder,
        })
    }
}

/// As `key=number key=number`.
impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = [self.pid, self.init, self.cgroup, self.directory, self.listener].map(Some);
        let numbers = needed.into_iter().chain([self.notify, self.console, self.responder]);
        let mut separator = "";
        for (key, number) in KEYS.iter().zip(numbers) {
            if let Some(number) = number {
                write!(f, "{separator}{key}={number}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::Descriptors;
    use std::string::ToString;

    #[test]
    fn descriptors_are_read_as_they_are_written() {
        let all = Descriptors {
            pid: 1234,
            init: 5,
            cgroup: 6,
            directory: 7,
            listener: 8,
            notify: Some(9),
            console: None,
            responder: Some(11),
        };
        let text = all.to_string();
        assert_eq!(text, "pid=1234 init=5 cgroup=6 directory=7 listener=8 notify=9 responder=11");
        assert_eq!(Descriptors::parse(&text), Some(all));
        for text in ["", "pid=1 init=5 cgroup=6 directory=7", "pid=1 init=x cgroup=6 listener=8"] {
            assert_eq!(Descriptors::parse(text), None, "{text:?}");
        }
    }
}
