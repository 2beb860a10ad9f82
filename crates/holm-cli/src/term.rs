//! Text on a terminal: colours, sizes and times.

use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd};

use holm::terminal::GuestOutput;

/// Bold red.
pub const RED: &str = "1;31";
/// Green.
pub const GREEN: &str = "32";
/// Yellow.
pub const YELLOW: &str = "33";
/// Cyan.
pub const CYAN: &str = "36";
/// Bold.
pub const BOLD: &str = "1";
/// Faint.
pub const DIM: &str = "2";

/// Whether standard output gets colours; `when` is the `--color` option.
pub fn colours_on_stdout(when: Option<&str>) -> bool {
    wanted(when, || std::io::stdout().is_terminal())
}

/// Whether standard error gets colours.
pub fn colours_on_stderr(when: Option<&str>) -> bool {
    wanted(when, || std::io::stderr().is_terminal())
}

/// <https://no-color.org>: `NO_COLOR` holds unless the command line says otherwise.
fn wanted(when: Option<&str>, terminal: impl Fn() -> bool) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    match when {
        Some("always") => true,
        Some("never") => false,
        _ => !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb") && terminal(),
    }
}

/// The columns of the terminal that standard output is; `None` if it is none.
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    // Some serial lines do not know it.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// `text` in a colour, if there are colours.
pub fn paint(text: &str, colour: &str, on: bool) -> String {
    if on { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Prints to standard output; a reader that has gone (`holm ls | head`) is no error.
pub fn print(text: &str) {
    filtered(std::io::stdout().as_fd(), text);
}

/// Prints to standard error.
pub fn print_error(text: &str) {
    filtered(std::io::stderr().as_fd(), text);
}

/// A base, an archive or a guest may have chosen a part of the text.
fn filtered(output: BorrowedFd<'_>, text: &str) {
    let mut output = GuestOutput::new(output);
    let _ = output.write(text.as_bytes()).and_then(|()| output.finish());
}

/// Bytes for a person: `831`, `4.0K`, `12.5M`.
pub fn size(bytes: u64) -> String {
    let units = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    #[allow(clippy::cast_precision_loss)] // One digit after the point is shown.
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1}{}", units[unit])
}

/// A number of processes.
pub fn processes(count: u64) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// A number of things whose plural ends in -s.
pub fn count(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// CPU time for a person: `0.54 s`.
pub fn cpu_time(usec: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // Two digits after the point are shown.
    let seconds = usec as f64 / 1e6;
    format!("{seconds:.2} s")
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// How long ago a time was (seconds since 1970): `5 min ago`.
pub fn ago(time: u64) -> String {
    format!("{} ago", since(time))
}

/// The time passed since (seconds since 1970): `5 min`.
pub fn since(time: u64) -> String {
    span(now().saturating_sub(time))
}

/// A duration in the unit that fits: `5 s`, `12 min`, `3 h`, `9 days`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (1_048_524, "1.0M"),
            (5 << 30, "5.0G"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn spans() {
        let cases =
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days")];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text);
        }
    }
}
