//! Capabilities, `no_new_privs` and the filter's presence, as /proc/self/status has them.

use crate::report::Report;
use holm::config::Security;
use holm::security::{bounding_set, caps};

pub fn check(report: &mut Report, expected: Option<&str>) {
    let expected = match expected {
        Some(hex) => u64::from_str_radix(hex, 16).expect("hexadecimal"),
        None => bounding_set(&Security::default()).expect("the default"),
    };
    for (field, want) in [
        ("CapBnd", expected),
        ("CapPrm", expected),
        ("CapEff", expected),
        ("CapInh", 0),
        ("CapAmb", 0),
    ] {
        let have = u64::from_str_radix(&status(field), 16).unwrap_or(u64::MAX);
        let detail = format!(
            "{have:x}, more than expected: {:?}, less: {:?}",
            caps::names(have & !want),
            caps::names(want & !have)
        );
        report.check(have == want, field, detail);
    }
    report.check(
        status("NoNewPrivs") == "0",
        "NoNewPrivs is off, so that sudo works",
        status("NoNewPrivs"),
    );
    report.check(status("Seccomp") == "2", "Seccomp", status("Seccomp"));
}

/// One field of /proc/self/status.
pub fn status(field: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or("absent").trim().to_owned()
}
