//! Tables, as wide as a terminal at most.

use crate::term::{BOLD, paint};

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

/// The spaces between two columns.
const GAP: usize = 2;

/// No column is cut below this.
const NARROWEST: usize = 4;

/// Columns as wide as their widest cell, but together at most as wide as the terminal, if there is
/// one; an empty table is empty.
pub fn table(head: &[&str], rows: &[Vec<Cell>], colour: bool, terminal: Option<usize>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column)).map(|c| c.text.chars().count());
        cells.chain(head.get(column).map(|h| h.chars().count())).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(width).collect();
    if let Some(terminal) = terminal {
        shrink(&mut widths, terminal.saturating_sub(GAP * head.len().saturating_sub(1)));
    }
    let head: Vec<Cell> = head.iter().map(|h| coloured(*h, BOLD)).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        for (column, cell) in row.iter().enumerate() {
            let shown = cut(&cell.text, widths[column]);
            let gap = widths[column] - shown.chars().count() + GAP;
            text.push_str(&paint(
                &shown,
                cell.colour.unwrap_or(""),
                colour && cell.colour.is_some(),
            ));
            if column + 1 < row.len() {
                text.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push('\n');
    }
    text
}

/// Takes from the widest columns until all fit into `space`, or none can give more.
fn shrink(widths: &mut [usize], space: usize) {
    while widths.iter().sum::<usize>() > space {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return,
        }
    }
}

/// A text in at most so many columns; `…` stands for what is missing.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Names and values, one pair a line.
pub fn list(lines: &[(&str, String)], colour: bool) -> String {
    let width = lines.iter().map(|l| l.0.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| {
        let gap = " ".repeat(width - name.len() + GAP);
        text + &paint(name, BOLD, colour) + &gap + value + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::DIM;

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![Cell::from("a"), coloured("long value", DIM)],
            vec![Cell::from("bcd"), Cell::from(1)],
        ]
    }

    #[test]
    fn tables_are_aligned_and_need_no_trailing_blanks() {
        let aligned = "N    VALUE\na    long value\nbcd  1\n";
        assert_eq!(table(&["N", "VALUE"], &rows(), false, None), aligned);
        assert_eq!(table(&["N"], &[], false, None), "");
        let text = table(&["N", "VALUE"], &rows(), true, None);
        assert!(text.contains("\x1b[2mlong value\x1b[0m\n") && !text.contains("\x1b[m"));
    }

    #[test]
    fn tables_keep_to_the_terminal() {
        let head = ["N", "VALUE"];
        assert_eq!(table(&head, &rows(), false, Some(15)), table(&head, &rows(), false, None));
        assert_eq!(table(&head, &rows(), false, Some(11)), "N    VALUE\na    long …\nbcd  1\n");
        assert_eq!(table(&head, &rows(), false, Some(0)), "N    VAL…\na    lon…\nbcd  1\n");
        let text = table(&head, &rows(), true, Some(11));
        assert!(text.contains("\x1b[2mlong …\x1b[0m\n"), "a cut cell keeps its colour: {text:?}");
    }
}
