//! Resource limits: `SOFT:HARD`.

use crate::config::nearest::nearest;
use crate::config::types::Rlimit;
use crate::config::units::{self, Parsed};

/// Resource limits and whether they count bytes.
const RLIMITS: [(&str, bool); 16] = [
    ("as", true),
    ("core", true),
    ("cpu", false),
    ("data", true),
    ("fsize", true),
    ("locks", false),
    ("memlock", true),
    ("msgqueue", true),
    ("nice", false),
    ("nofile", false),
    ("nproc", false),
    ("rss", true),
    ("rtprio", false),
    ("rttime", false),
    ("sigpending", false),
    ("stack", true),
];

/// Whether there is a resource limit of this name; the error suggests the nearest one.
pub(in crate::config) fn rlimit_name(name: &str) -> Parsed<()> {
    if RLIMITS.iter().any(|(n, _)| *n == name) {
        return Ok(());
    }
    let hint = nearest(name, RLIMITS.map(|r| r.0)).map_or_else(
        || format!("; they are {}", RLIMITS.map(|r| r.0).join(", ")),
        |n| format!("; did you mean {n:?}?"),
    );
    Err(format!("there is no resource limit {name:?}{hint}"))
}

/// `1024`, `1024:4096`, `64M:unlimited`; sizes only where the limit counts bytes.
pub(in crate::config) fn rlimit(name: &str, text: &str) -> Parsed<Rlimit> {
    let bytes = RLIMITS.iter().any(|(n, b)| *n == name && *b);
    let one = |t: &str| match t {
        "unlimited" | "infinity" => Ok(Rlimit::UNLIMITED),
        _ if bytes => units::size(t),
        _ => units::count(t, 0, u64::MAX),
    };
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    let limit = Rlimit { soft: one(soft)?, hard: one(hard)? };
    if limit.soft <= limit.hard {
        Ok(limit)
    } else {
        Err(format!("the soft limit {soft} is above the hard limit {hard}; write SOFT:HARD"))
    }
}

pub(in crate::config) fn show_rlimit(name: &str, limit: Rlimit) -> String {
    let bytes = RLIMITS.iter().any(|(n, b)| *n == name && *b);
    let one = |n: u64| match n {
        Rlimit::UNLIMITED => "unlimited".to_owned(),
        _ if bytes => units::show_size(n),
        _ => n.to_string(),
    };
    if limit.soft == limit.hard {
        one(limit.soft)
    } else {
        format!("{}:{}", one(limit.soft), one(limit.hard))
    }
}
