//! Runs commands in turns and takes the wall time of each whole process: from before the fork until it
//! was waited for.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::stats::Summary;

/// Rounds that are run and not counted: caches fill, groups and tables are made.
const WARM_UP: usize = 3;

/// One that takes part.
pub struct Contestant {
    pub name: String,
    pub argv: Vec<String>,
}

impl Contestant {
    pub fn new<S: Into<String>>(name: &str, argv: impl IntoIterator<Item = S>) -> Self {
        Self { name: name.to_owned(), argv: argv.into_iter().map(Into::into).collect() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command
            .args(&self.argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs it once; milliseconds, or why it failed.
    fn run(&self) -> Result<f64, String> {
        let mut command = self.command();
        let begin = Instant::now();
        let status = command.status();
        let took = begin.elapsed().as_secs_f64() * 1e3;
        match status {
            Ok(status) if status.success() => Ok(took),
            Ok(_) => Err(self.complaint()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err("not installed".to_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    /// What it says when it fails; asked only then, so that nobody is measured writing to a pipe.
    fn complaint(&self) -> String {
        match self.command().stderr(Stdio::piped()).output() {
            Ok(output) if output.status.success() => "failed once, and not again".to_owned(),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                let line =
                    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
                format!("{}: {}", output.status, line.trim())
            }
            Err(e) => e.to_string(),
        }
    }
}

/// What came of a race: milliseconds for those who ran through, a reason for the others.
pub struct Outcome {
    pub name: String,
    pub samples: Result<Vec<f64>, String>,
}

/// Runs all in turns, `n` times, so that noise meets all alike. One that fails is out.
pub fn interleaved(contestants: &[Contestant], n: usize) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = contestants
        .iter()
        .map(|contestant| Outcome {
            name: contestant.name.clone(),
            samples: Ok(Vec::with_capacity(n)),
        })
        .collect();
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for round in 0..n + WARM_UP {
        // In an order drawn anew: some leave work behind that the one who comes next waits for.
        for index in draw.order(contestants.len()) {
            let Ok(samples) = &mut outcomes[index].samples else { continue };
            match contestants[index].run() {
                Ok(_) if round < WARM_UP => {}
                Ok(took) => samples.push(took),
                Err(reason) => outcomes[index].samples = Err(reason),
            }
        }
    }
    outcomes
}

/// Draws orders, the same in each run of the program (xorshift64).
struct Draw(u64);

impl Draw {
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_cached_key(|_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        });
        order
    }
}

/// A table of milliseconds, with each one's ratio to the first that is named `reference`.
pub fn table(outcomes: &[Outcome], reference: &str) -> String {
    let base = outcomes.iter().find(|outcome| outcome.name == reference);
    let base = base.and_then(|outcome| outcome.samples.as_ref().ok());
    let mut text = format!(
        "| | median ms | p10 | p90 | times {reference} (p10 to p90 of pairs) |\n|---|---:|---:|---:|---:|\n"
    );
    for outcome in outcomes {
        text.push_str(&match &outcome.samples {
            Ok(samples) => {
                let Summary { median, p10, p90 } = Summary::of(samples);
                let ratio = base.map_or("-".to_owned(), |base| {
                    let ratio = Summary::of_ratios(samples, base);
                    format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.p10, ratio.p90)
                });
                format!("| {} | {median:.2} | {p10:.2} | {p90:.2} | {ratio} |\n", outcome.name)
            }
            Err(reason) => format!("| {} | not measured: {} | | | |\n", outcome.name, cell(reason)),
        });
    }
    text
}

/// Text that fits a cell of a table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_one_is_out_and_told() {
        let contestants = [
            Contestant::new("true", ["true"]),
            Contestant::new("false", ["sh", "-c", "echo why '|' not >&2; exit 3"]),
            Contestant::new("absent", ["/nonexistent/program"]),
        ];
        let outcomes = interleaved(&contestants, 4);
        assert_eq!(outcomes[0].samples.as_ref().map(Vec::len), Ok(4));
        let text = table(&outcomes, "true");
        assert!(text.contains("| 1.00 (1.00 to 1.00) |"), "{text}");
        assert!(text.contains("not measured: exit status: 3: why \\| not"), "{text}");
        assert!(text.contains("| absent | not measured: not installed |"), "{text}");
    }
}
