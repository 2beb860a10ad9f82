//! Signals: by name or by number.

use crate::config::types::Signal;

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
            format!(
                "{text:?} is not a signal; write a name or a number, as SIGTERM, SIGRTMIN+3 or 15"
            )
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
