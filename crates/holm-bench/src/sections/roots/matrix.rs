//! Many figures of many places: each place prints its own, and they are compared with one place's
//! of the same round.

use crate::rounds::{Outcome, Row, cell, take_turns};
use crate::stats::Summary;

/// The first round fills caches and is not counted.
pub const WARM_UP: usize = 1;

/// What a place printed in a round: names and values, in the order of the program.
type Figures = Vec<(String, f64)>;

/// All rounds of a place, or why there are none.
pub struct Column {
    name: String,
    rounds: Result<Vec<Figures>, String>,
}

/// Lets each place print its figures `n` times, in turns; `once` gets its index.
pub fn measure<'a>(
    names: impl IntoIterator<Item = &'a str>,
    n: usize,
    mut once: impl FnMut(usize) -> Result<String, String>,
) -> Vec<Column> {
    let rows: Vec<Row> = names.into_iter().map(Row::new).collect();
    let mut printed: Vec<Vec<Figures>> = rows.iter().map(|_| Vec::new()).collect();
    let outcomes = take_turns(rows, n, WARM_UP, |index| {
        printed[index].push(parse(&once(index)?)?);
        Ok(0.0)
    });
    let column = |(Outcome { row, samples }, mut rounds): (Outcome, Vec<Figures>)| Column {
        name: row.name,
        rounds: samples.map(|_| rounds.split_off(WARM_UP)),
    };
    outcomes.into_iter().zip(printed).map(column).collect()
}

/// Lines of a name, a tab, and a number.
fn parse(text: &str) -> Result<Figures, String> {
    let figure = |line: &str| {
        let (name, value) = line.split_once('\t')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    let figures = text.lines().map(|line| figure(line).ok_or(format!("no figure: {line}")));
    figures.collect()
}

/// The values of one name in all rounds.
fn values(rounds: &[Figures], name: &str) -> Vec<f64> {
    let value =
        |round: &Figures| round.iter().find(|(its, _)| its == name).map(|&(_, value)| value);
    rounds.iter().filter_map(value).collect()
}

/// A table with a row for each figure and a column for each place: values of the reference, ratios
/// of the others to it.
pub fn matrix(columns: &[Column], reference: &str) -> String {
    let found = columns.iter().find(|column| column.name == reference);
    let base = match found.map(|column| &column.rounds) {
        Some(Ok(base)) => base,
        Some(Err(reason)) => return format!("Not measured: {reference}: {}\n", cell(reason)),
        None => return format!("Not measured: there is no {reference}\n"),
    };
    let (measured, failed): (Vec<_>, Vec<_>) =
        columns.iter().partition(|column| column.rounds.is_ok());
    let names: Vec<&str> = measured.iter().map(|column| column.name.as_str()).collect();
    let mut text = format!("| | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for (name, _) in base.first().into_iter().flatten() {
        let reference_values = values(base, name);
        text += &format!("| {name} |");
        for Column { name: place, rounds } in &measured {
            let its = values(rounds.as_deref().unwrap_or_default(), name);
            text += &match its.len() {
                0 => " |".to_owned(),
                _ if place == reference => format!(" {} |", short(Summary::of(&its).median)),
                _ => format!(" {} |", Summary::of_ratios(&its, &reference_values).with_spread()),
            };
        }
        text.push('\n');
    }
    for Column { name, rounds } in failed {
        let reason = rounds.as_ref().err().map_or("", String::as_str);
        text += &format!("\nNot measured: {name}: {}\n", cell(reason));
    }
    text
}

/// A value with three digits that tell.
fn short(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_compared_within_rounds() {
        let column = |name: &str, values: &[f64]| Column {
            name: name.to_owned(),
            rounds: Ok(values.iter().map(|&value| vec![("stat".to_owned(), value)]).collect()),
        };
        let failed = Column { name: "LXC".to_owned(), rounds: Err("not installed".to_owned()) };
        let columns = [column("host", &[100.0, 200.0]), column("plain", &[150.0, 300.0]), failed];
        let text = matrix(&columns, "host");
        assert!(text.contains("| stat | 200 | 1.50 (1.50 to 1.50) |"), "{text}");
        assert!(text.contains("Not measured: LXC: not installed"), "{text}");
    }

    #[test]
    fn what_is_no_figure_is_an_error() {
        assert_eq!(parse("stat\t1.5\n"), Ok(vec![("stat".to_owned(), 1.5)]));
        assert!(parse("stat 1.5\n").is_err());
        assert!(parse("stat\tmuch\n").is_err());
    }
}
