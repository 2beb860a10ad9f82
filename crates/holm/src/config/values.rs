//! Values with a form of their own: published ports, bind mounts, signals, CPU lists, capabilities.

use std::net::{IpAddr, Ipv6Addr};
use std::path::{Component, Path, PathBuf};

use super::nearest::nearest;
use super::types::{BindMount, Proto, Publish, Rlimit, Signal};
use super::units::{self, Parsed};

const PUBLISH_HELP: &str = "write [HOST-ADDRESS:]HOST-PORT:GUEST-PORT[/tcp|/udp], as 8080:80/tcp, 127.0.0.1:8080:80, [2001:db8::2]:8080:80 or 8000-8009:9000-9009";

/// `8080:80/tcp`, `127.0.0.1:8080:80`, `[2001:db8::2]:53:53/udp`, `8000-8009:9000-9009`: one entry for each port.
pub(super) fn publish(text: &str) -> Parsed<Vec<Publish>> {
    let wrong = |what: String| format!("{what}; {PUBLISH_HELP}");
    let (ports, proto) = match text.rsplit_once('/') {
        None | Some((_, "tcp")) => (text.rsplit_once('/').map_or(text, |(p, _)| p), Proto::Tcp),
        Some((ports, "udp")) => (ports, Proto::Udp),
        Some((_, other)) => {
            return Err(wrong(format!("{other:?} is no protocol that can be published")));
        }
    };
    let (rest, guest) =
        ports.rsplit_once(':').ok_or_else(|| wrong(format!("{text:?} names only one port")))?;
    let (address, host) = match rest.rsplit_once(':') {
        None => (None, rest),
        Some((address, host)) => (Some(address), host),
    };
    let host_ip = match address {
        None => None,
        Some(a) => Some(host_address(a).ok_or_else(|| wrong(format!("{a:?} is not an address")))?),
    };
    if host_ip == Some(Ipv6Addr::LOCALHOST.into()) {
        return Err(
            "no port can be published on ::1: the kernel routes no answer to it; write 127.0.0.1"
                .to_owned(),
        );
    }
    let (host, guest) = (range(host).map_err(&wrong)?, range(guest).map_err(&wrong)?);
    if host.len() != guest.len() {
        return Err(wrong(format!(
            "{} ports of the host do not fit {} ports of the guest",
            host.len(),
            guest.len()
        )));
    }
    Ok(host
        .zip(guest)
        .map(|(host_port, guest_port)| Publish { host_ip, host_port, guest_port, proto })
        .collect())
}

/// An IPv6 address needs brackets, or its last group would be read as a port.
fn host_address(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(v6) => v6.parse().ok().filter(IpAddr::is_ipv6),
        None => text.parse().ok().filter(IpAddr::is_ipv4),
    }
}

fn range(text: &str) -> Parsed<std::ops::RangeInclusive<u16>> {
    let port = |t: &str| match t.parse::<u16>() {
        Ok(p) if p > 0 && !t.starts_with('+') => Ok(p),
        _ => Err(format!("{t:?} is not a port, 1 to 65535")),
    };
    let (first, last) = match text.split_once('-') {
        None => (port(text)?, port(text)?),
        Some((a, b)) => (port(a)?, port(b)?),
    };
    if first <= last { Ok(first..=last) } else { Err(format!("the range {text} runs backwards")) }
}

impl std::fmt::Display for Publish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host_ip {
            None => {}
            Some(IpAddr::V4(address)) => write!(f, "{address}:")?,
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:")?,
        }
        let proto = match self.proto {
            Proto::Tcp => "tcp",
            Proto::Udp => "udp",
        };
        write!(f, "{}:{}/{proto}", self.host_port, self.guest_port)
    }
}

/// `SOURCE:TARGET[:ro|:rw]`, both absolute.
pub(super) fn mount(text: &str) -> Parsed<BindMount> {
    const HELP: &str = "write SOURCE:TARGET or SOURCE:TARGET:ro, as /srv/data:/data:ro";
    let (rest, read_only) = match text.strip_suffix(":ro") {
        Some(rest) => (rest, true),
        None => (text.strip_suffix(":rw").unwrap_or(text), false),
    };
    let (source, target) =
        rest.split_once(':').ok_or_else(|| format!("{text:?} has no target; {HELP}"))?;
    if target.contains(':') {
        return Err(format!("{text:?} has too many parts; {HELP}"));
    }
    let (source, target) = (
        absolute(source).map_err(|e| format!("{e}; {HELP}"))?,
        absolute(target).map_err(|e| format!("{e}; {HELP}"))?,
    );
    if target == Path::new("/") {
        return Err(format!("nothing can be bound over the guest's whole root; {HELP}"));
    }
    Ok(BindMount { source, target, read_only })
}

pub(super) fn show_mount(m: &BindMount) -> String {
    format!("{}:{}{}", m.source.display(), m.target.display(), if m.read_only { ":ro" } else { "" })
}

/// An absolute path without `..`, with `//` and `/./` folded.
fn absolute(text: &str) -> Parsed<PathBuf> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(format!("{text:?} is not an absolute path"));
    }
    if path.components().any(|c| c == Component::ParentDir) || text.contains('\0') {
        return Err(format!("{text:?} must not contain \"..\""));
    }
    Ok(path.components().collect())
}

/// A device node below `/dev`.
pub(super) fn device(text: &str) -> Parsed<PathBuf> {
    let path = absolute(text)?;
    if path.starts_with("/dev") && path != Path::new("/dev") {
        Ok(path)
    } else {
        Err(format!("{text:?} is no device; write a path below /dev, as /dev/fuse"))
    }
}

const SIGNALS: [(&str, i32); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];
/// First and last real-time signal as the C library counts them.
const RTMIN: i32 = 34;
const RTMAX: i32 = 64;

impl Signal {
    /// Reads `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3` or `SIGRTMAX-1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!("{text:?} is no signal; write a name or a number, as SIGTERM, SIGRTMIN+3 or 15")
        };
        if let Ok(number) = text.parse::<i32>() {
            return if (1..=RTMAX).contains(&number) { Ok(Self(number)) } else { Err(unknown()) };
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Some((_, number)) = SIGNALS.iter().find(|(n, _)| *n == name) {
            return Ok(Self(*number));
        }
        let offset = |t: &str, sign: char| {
            if t.is_empty() {
                Some(0)
            } else {
                t.strip_prefix(sign)?.parse::<u8>().ok().map(i32::from)
            }
        };
        let number = if let Some(rest) = name.strip_prefix("RTMIN") {
            offset(rest, '+').map(|n| RTMIN + n)
        } else {
            name.strip_prefix("RTMAX").and_then(|rest| offset(rest, '-')).map(|n| RTMAX - n)
        };
        number.filter(|n| (RTMIN..=RTMAX).contains(n)).map(Self).ok_or_else(unknown)
    }
}

/// The names that [`Signal::parse`] knows, without SIG.
pub fn signals() -> impl Iterator<Item = &'static str> {
    SIGNALS.iter().map(|(name, _)| *name)
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (SIGNALS.iter().find(|(_, n)| *n == self.0), self.0 - RTMIN) {
            (Some((name, _)), _) => write!(f, "SIG{name}"),
            (None, 0) => f.write_str("SIGRTMIN"),
            (None, n @ 1..) => write!(f, "SIGRTMIN+{n}"),
            _ => write!(f, "{}", self.0),
        }
    }
}

/// The kernel's list form, `0-3,6`.
pub(super) fn cpu_set(text: &str) -> Parsed<String> {
    let wrong = || format!("{text:?} is no list of CPUs; write numbers and ranges, as 0-3,6");
    let text_ = text.replace(' ', "");
    for part in text_.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.parse::<u16>().ok().filter(|_| !t.starts_with('+'));
        match (number(first), number(last)) {
            (Some(a), Some(b)) if a <= b => {}
            _ => return Err(wrong()),
        }
    }
    Ok(text_)
}

/// Capabilities up to `CAP_LAST_CAP` of Linux 6.18.
const CAPS: [&str; 41] = [
    "CAP_AUDIT_CONTROL",
    "CAP_AUDIT_READ",
    "CAP_AUDIT_WRITE",
    "CAP_BLOCK_SUSPEND",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_KILL",
    "CAP_LEASE",
    "CAP_LINUX_IMMUTABLE",
    "CAP_MAC_ADMIN",
    "CAP_MAC_OVERRIDE",
    "CAP_MKNOD",
    "CAP_NET_ADMIN",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_RAW",
    "CAP_PERFMON",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYSLOG",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_CHROOT",
    "CAP_SYS_MODULE",
    "CAP_SYS_NICE",
    "CAP_SYS_PACCT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_WAKE_ALARM",
];

/// `CAP_X` or `+CAP_X` (one more), `-CAP_X` (one less), in either case and with or without `CAP_`.
pub(super) fn capability(text: &str) -> Parsed<String> {
    let (minus, name) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let upper = name.to_ascii_uppercase();
    let full = if upper.starts_with("CAP_") { upper } else { format!("CAP_{upper}") };
    if CAPS.contains(&full.as_str()) {
        return Ok(format!("{minus}{full}"));
    }
    let hint = nearest(&full, CAPS).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    Err(format!("{name:?} is no capability{hint}"))
}

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

/// Whether there is a resource limit of this name, else the nearest one.
pub(super) fn rlimit_name(name: &str) -> Parsed<()> {
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
pub(super) fn rlimit(name: &str, text: &str) -> Parsed<Rlimit> {
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

pub(super) fn show_rlimit(name: &str, limit: Rlimit) -> String {
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

/// A name of a base or a guest, as `pool::Name` has it.
pub(super) fn name(text: &str) -> Parsed<String> {
    let good = text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is no name; use 1 to 63 letters, digits, '.', '_' and '-', a letter or digit first"
        ))
    }
}

/// Labels of letters, digits and `-`, at most 64 bytes (the kernel's limit).
pub(super) fn hostname(text: &str) -> Parsed<String> {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if text.len() <= 64 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no host name; use at most 64 letters, digits, '-' and '.'"))
    }
}

/// An address that one host can have.
pub(super) fn address(text: &str) -> Parsed<IpAddr> {
    let address: IpAddr = text.parse().map_err(|_| format!("{text:?} is not an IP address"))?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!("{text} is no address of a single host"));
    }
    Ok(address)
}

/// A name of an environment variable.
pub(super) fn variable(text: &str) -> Parsed<String> {
    let good = !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} cannot name a variable; use letters, digits and _"))
    }
}

/// A line of `authorized_keys`.
pub(super) fn ssh_key(text: &str) -> Parsed<String> {
    const HELP: &str = "write a whole line of a .pub file, as \"ssh-ed25519 AAAA... me@here\"";
    let key = text.trim();
    if key.contains('\n') {
        return Err(format!("a public key is one line; {HELP}"));
    }
    if key.contains("PRIVATE KEY") {
        return Err(format!("this is a private key; {HELP}"));
    }
    let kind = |w: &str| ["ssh-", "ecdsa-", "sk-"].iter().any(|p| w.starts_with(p));
    let words: Vec<&str> = key.split_whitespace().collect();
    if words.windows(2).any(|w| kind(w[0]) && w[1].starts_with("AAAA")) {
        Ok(key.to_owned())
    } else {
        Err(format!("{text:?} is no public key; {HELP}"))
    }
}
