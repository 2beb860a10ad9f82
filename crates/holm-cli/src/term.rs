//! Text on a terminal: colours and tables.

use std::io::{IsTerminal, Write};

/// Bold red.
pub const RED: &str = "1;31";
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
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints to standard error.
pub fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
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
