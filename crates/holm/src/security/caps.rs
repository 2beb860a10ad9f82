//! Capabilities: the bounding set that a guest's init starts with.
//!
//! A guest's capabilities hold in its own user namespace only, so most are harmless and all that a
//! distribution needs stay: systemd, sshd, sudo, ping and nested containers find what they expect.
//! Dropped are those that the kernel honours in the initial user namespace only. With them a
//! guest's services would try and fail; without them systemd skips those services
//! (`ConditionCapability=`).

use rustix::thread::{self as thread, CapabilitySet, CapabilitySets};

use super::Error;
use crate::config::Security;

/// Names in the order of their numbers in include/uapi/linux/capability.h, without `CAP_`.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Every capability that has a name.
pub const ALL: u64 = (1 << NAMES.len()) - 1;

/// Capabilities that no guest may have, and why.
const NEVER: [(&str, &str); 7] = [
    (
        "SYS_MODULE",
        "it loads code into the host's kernel; without it systemd skips loading modules",
    ),
    ("SYS_RAWIO", "it gives access to the host's I/O ports and physical memory"),
    ("SYS_TIME", "all guests share the host's clock; without it time daemons stay off"),
    ("MAC_OVERRIDE", "it bypasses the host's mandatory access control"),
    ("SYSLOG", "the kernel's log and its addresses are the host's"),
    ("WAKE_ALARM", "it wakes the host from sleep"),
    ("BLOCK_SUSPEND", "it keeps the host from sleeping"),
];

/// Capabilities that a guest has only if `security.caps` names them: some software refuses to run
/// without them, though the kernel honours them on the host only (audit, security policy,
/// accounting, BPF, perf).
const ON_REQUEST: [&str; 6] =
    ["MAC_ADMIN", "AUDIT_CONTROL", "AUDIT_READ", "SYS_PACCT", "PERFMON", "BPF"];

/// The bit of a capability, with or without `CAP_`, in any case.
pub fn bit(name: &str) -> Option<u64> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
    NAMES.iter().position(|n| *n == short).map(|at| 1 << at)
}

/// The names of the capabilities in `bits`, as `CAP_X`, lowest number first.
pub fn names(bits: u64) -> Vec<String> {
    let has = |(at, _): &(usize, &&str)| bits & (1 << at) != 0;
    NAMES.iter().enumerate().filter(has).map(|(_, name)| format!("CAP_{name}")).collect()
}

/// The capabilities (bits by number) that a guest's processes may ever have.
///
/// `security.caps` changes the default: `CAP_X` keeps one more, `-CAP_X` one less; never one that
/// no guest may have.
pub fn bounding_set(config: &Security) -> Result<u64, Error> {
    let never = NEVER.iter().fold(0, |bits, (name, _)| bits | bit(name).unwrap_or(0));
    let on_request = ON_REQUEST.iter().fold(0, |bits, name| bits | bit(name).unwrap_or(0));
    let mut kept = ALL & !never & !on_request;
    for item in &config.caps {
        let (name, drop) = item.strip_prefix('-').map_or((item.as_str(), false), |n| (n, true));
        let bit = bit(name).ok_or_else(|| Error::UnknownCapability(name.to_owned()))?;
        if drop {
            kept &= !bit;
        } else if bit & never != 0 {
            let (_, why) = NEVER[(never & (bit - 1)).count_ones() as usize];
            return Err(Error::NotGrantable(names(bit).concat(), why));
        } else {
            kept |= bit;
        }
    }
    Ok(kept)
}

/// Drops every capability but `kept` of the calling thread: bounding set, ambient set, inheritable
/// set, and what it holds now. What it executes as root then has exactly `kept`.
pub fn apply_caps(kept: u64) -> Result<(), Error> {
    let fail = |e: rustix::io::Errno| Error::Capabilities(e.into());
    // A kernel newer than NAMES may have more: every number is dropped until the kernel returns
    // EINVAL.
    for number in (0..64).filter(|n| kept & (1 << n) == 0) {
        match thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(
            1 << number,
        )) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) if number >= NAMES.len() => break,
            Err(e) => return Err(fail(e)),
        }
    }
    thread::clear_ambient_capability_set().map_err(fail)?;
    let now = thread::capabilities(None).map_err(fail)?;
    let keep = CapabilitySet::from_bits_retain(kept);
    let sets = CapabilitySets {
        effective: now.permitted & keep,
        permitted: now.permitted & keep,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, sets).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(items: &[&str]) -> Result<u64, Error> {
        let caps = items.iter().map(|item| (*item).to_owned()).collect();
        bounding_set(&Security { caps, ..Security::default() })
    }

    #[test]
    fn numbers_are_the_kernels() {
        for (name, number) in [
            ("chown", 0),
            ("CAP_NET_RAW", 13),
            ("SYS_ADMIN", 21),
            ("cap_setfcap", 31),
            ("CHECKPOINT_RESTORE", 40),
        ] {
            assert_eq!(bit(name), Some(1 << number), "{name}");
        }
        assert_eq!(bit("CAP_CAP_CHOWN"), None);
        assert_eq!(names(1 << 13 | 1), ["CAP_CHOWN", "CAP_NET_RAW"]);
    }

    #[test]
    fn never_is_in_the_order_of_numbers() {
        assert!(NEVER.is_sorted_by_key(|(name, _)| bit(name)));
        assert!(NEVER.iter().all(|(name, _)| bit(name).is_some()));
        assert!(ON_REQUEST.iter().all(|name| bit(name).is_some()));
    }

    #[test]
    fn a_guest_keeps_what_a_distribution_needs() {
        let kept = set(&[]).unwrap();
        for name in [
            "SYS_ADMIN",
            "NET_ADMIN",
            "NET_RAW",
            "SETUID",
            "SYS_CHROOT",
            "SYS_PTRACE",
            "SYS_BOOT",
            "MKNOD",
            "AUDIT_WRITE",
            "SETFCAP",
        ] {
            assert_ne!(kept & bit(name).unwrap(), 0, "{name}");
        }
        for name in ["SYS_MODULE", "SYS_TIME", "SYSLOG", "BPF", "AUDIT_READ"] {
            assert_eq!(kept & bit(name).unwrap(), 0, "{name}");
        }
    }

    #[test]
    fn items_change_the_default() {
        let kept = set(&[]).unwrap();
        assert_eq!(set(&["-CAP_NET_RAW", "bpf"]).unwrap(), kept & !(1 << 13) | 1 << 39);
    }

    #[test]
    fn above_the_bound_says_why() {
        let error = set(&["CAP_SYS_TIME"]).unwrap_err().to_string();
        assert!(error.contains("no guest may have CAP_SYS_TIME: all guests share"), "{error}");
        let error = set(&["CAP_TIME"]).unwrap_err().to_string();
        assert!(error.contains("no capability \"CAP_TIME\""), "{error}");
    }
}
