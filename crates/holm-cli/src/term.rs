//! Text on a terminal: colours and tables.

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

/// A cell of a table.
#[derive(Debug)]
pub struct Cell {
    text: String,
    colour: Option<&'static str>,
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Self {
        Self { text: value.to_string(), colour: None }
    }
}

/// A cell in a colour.
pub fn coloured(text: impl Into<String>, colour: &'static str) -> Cell {
    Cell { text: text.into(), colour: Some(colour) }
}

/// Columns as wide as their widest cell, two spaces apart; an empty table is empty.
pub fn table(head: &[&str], rows: &[Vec<Cell>], colour: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column)).map(|c| c.text.chars().count());
        cells.chain(head.get(column).map(|h| h.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<Cell> = head.iter().map(|h| coloured(*h, BOLD)).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        for (column, cell) in row.iter().enumerate() {
            text.push_str(&paint(
                &cell.text,
                cell.colour.unwrap_or(""),
                colour && cell.colour.is_some(),
            ));
            if column + 1 < row.len() {
                let gap = widths[column].saturating_sub(cell.text.chars().count()) + 2;
                text.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push('\n');
    }
    text
}

/// Names and values, one pair a line.
pub fn list(lines: &[(&str, String)], colour: bool) -> String {
    let width = lines.iter().map(|l| l.0.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| {
        let gap = " ".repeat(width - name.len() + 2);
        text + &paint(name, BOLD, colour) + &gap + value + "\n"
    })
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

    #[test]
    fn tables_are_aligned_and_need_no_trailing_blanks() {
        let rows = vec![
            vec![Cell::from("a"), coloured("long value", DIM)],
            vec![Cell::from("bcd"), Cell::from(1)],
        ];
        assert_eq!(table(&["N", "VALUE"], &rows, false), "N    VALUE\na    long value\nbcd  1\n");
        assert_eq!(table(&["N"], &[], false), "");
        let text = table(&["N", "VALUE"], &rows, true);
        assert!(text.contains("\x1b[2mlong value\x1b[0m\n") && !text.contains("\x1b[m"));
    }
}
