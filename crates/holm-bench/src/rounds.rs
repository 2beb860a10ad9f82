//! Runs commands in turns and takes the wall time of each whole process: from before the fork until
//! it was waited for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::build::{Build, Holm};
use crate::stats::Summary;

/// Rounds that are run and not counted: caches fill, cgroups and tables are made.
pub const WARM_UP: usize = 3;
/// How much of an error message a report shows, in characters.
const MESSAGE_MAX: usize = 500;

/// A row of a table.
#[derive(Clone)]
pub struct Row {
    pub name: String,
    /// The build of holm; rows of the same name are compared.
    pub build: Build,
}

impl Row {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), build: Build::Now }
    }

    /// A row of one of the builds of holm.
    pub fn of(holm: &Holm, name: &str) -> Self {
        Self { name: name.to_owned(), build: holm.build }
    }

    pub fn title(&self) -> String {
        self.name.clone() + self.build.suffix()
    }
}

/// A command that is measured.
pub struct Case {
    pub row: Row,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    /// A file that is its standard input; /dev/null without.
    input: Option<PathBuf>,
}

impl Case {
    pub fn new<S: Into<String>>(name: &str, argv: impl IntoIterator<Item = S>) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
        Self { row: Row::new(name), argv, env: Vec::new(), input: None }
    }

    /// A command of one of the builds of holm.
    pub fn of(holm: &Holm, name: &str, argv: Vec<String>) -> Self {
        Self { row: Row::of(holm, name), argv, env: Vec::new(), input: None }
    }

    pub fn with_env(mut self, key: &str, value: String) -> Self {
        self.env.push((key.to_owned(), value));
        self
    }

    pub fn with_input(mut self, file: PathBuf) -> Self {
        self.input = Some(file);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        let input = self.input.as_ref().and_then(|file| File::open(file).ok());
        command
            .args(&self.argv[1..])
            .envs(self.env.iter().cloned())
            .stdin(input.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts it, with its error messages in a file.
    pub fn spawn(&self, messages: &Path) -> Result<Child, String> {
        let file = File::create(messages).map_err(|e| format!("{}: {e}", messages.display()))?;
        self.command().stderr(file).spawn().map_err(|e| cannot_run(&e))
    }

    /// Runs it once; what it prints, or why it failed.
    pub fn output(&self) -> Result<String, String> {
        let output = self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        let output = output.map_err(|e| cannot_run(&e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}", output.status, in_one_line(&text)))
    }

    /// Runs it once; milliseconds, or why it failed.
    fn run(&self) -> Result<f64, String> {
        let mut command = self.command();
        let begin = Instant::now();
        let status = command.status();
        let took = begin.elapsed().as_secs_f64() * 1e3;
        match status {
            Ok(status) if status.success() => Ok(took),
            Ok(_) => Err(self.error_message()),
            Err(e) => Err(cannot_run(&e)),
        }
    }

    /// What it prints when it fails; asked only then, so that nobody is measured writing to a pipe.
    fn error_message(&self) -> String {
        match self.command().stderr(Stdio::piped()).output() {
            Ok(output) if output.status.success() => "failed once, and not again".to_owned(),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                format!("{}: {}", output.status, in_one_line(&text))
            }
            Err(e) => cannot_run(&e),
        }
    }
}

fn cannot_run(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "not installed".to_owned(),
        _ => error.to_string(),
    }
}

/// A program's error messages on one line.
pub fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "no message".to_owned();
    }
    lines.join("; ").chars().take(MESSAGE_MAX).collect()
}

/// What was measured in a row: milliseconds, or why there are none.
pub struct Outcome {
    pub row: Row,
    pub samples: Result<Vec<f64>, String>,
}

/// Runs all cases in turns, `n` times and some more that are not counted.
pub fn run(cases: &[Case], n: usize) -> Vec<Outcome> {
    let rows = cases.iter().map(|case| case.row.clone()).collect();
    take_turns(rows, n, WARM_UP, |index| cases[index].run())
}

/// Calls `once` for all rows in turns, `n` times after `warm_up` rounds, so that noise affects all
/// alike. A row that fails is out.
pub fn take_turns(
    rows: Vec<Row>,
    n: usize,
    warm_up: usize,
    mut once: impl FnMut(usize) -> Result<f64, String>,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> =
        rows.into_iter().map(|row| Outcome { row, samples: Ok(Vec::with_capacity(n)) }).collect();
    let mut shuffle = Shuffle(0x9e37_79b9_7f4a_7c15);
    for round in 0..n + warm_up {
        // In another order each round: some leave work behind that the next one waits for.
        for index in shuffle.order(outcomes.len()) {
            let Ok(samples) = &mut outcomes[index].samples else { continue };
            match once(index) {
                Ok(_) if round < warm_up => {}
                Ok(took) => samples.push(took),
                Err(reason) => outcomes[index].samples = Err(reason),
            }
        }
    }
    outcomes
}

/// Random orders, the same in each run of the program (xorshift64).
struct Shuffle(u64);

impl Shuffle {
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

/// The ratio of another build's row to that of the build that is measured, where both were
/// measured.
pub fn times_now(outcomes: &[Outcome], row: &Row) -> Option<Summary> {
    let find = |build: Build| {
        let mut found = outcomes.iter().filter(|outcome| outcome.row.name == row.name);
        found.find(|outcome| outcome.row.build == build)?.samples.as_ref().ok()
    };
    if row.build == Build::Now {
        return None;
    }
    Some(Summary::of_ratios(find(row.build)?, find(Build::Now)?))
}

/// A table of milliseconds, with each row's ratio to the first that is named `reference`, and where
/// there are rows of other builds, theirs to the build that is measured.
pub fn table(outcomes: &[Outcome], reference: &str) -> String {
    let base = outcomes.iter().find(|outcome| outcome.row.name == reference);
    let base = base.and_then(|outcome| outcome.samples.as_ref().ok());
    let compared = outcomes.iter().any(|outcome| outcome.row.build != Build::Now);
    let (head, rule) = if compared { (" times now |", "---:|") } else { ("", "") };
    let mut text = format!(
        "| | median ms | p10 | p90 | times {reference} (p10 to p90 of pairs) |{head}\n\
         |---|---:|---:|---:|---:|{rule}\n"
    );
    for outcome in outcomes {
        let title = outcome.row.title();
        text += &match &outcome.samples {
            Ok(samples) => {
                let Summary { median, p10, p90 } = Summary::of(samples);
                let ratio = base.map(|base| Summary::of_ratios(samples, base));
                let ratio = ratio.map_or("-".to_owned(), |ratio| ratio.with_spread());
                format!("| {title} | {median:.2} | {p10:.2} | {p90:.2} | {ratio} |")
            }
            Err(reason) => format!("| {title} | not measured: {} | | | |", cell(reason)),
        };
        if compared {
            let ratio = times_now(outcomes, &outcome.row);
            text += &format!(" {} |", ratio.map_or(String::new(), |ratio| ratio.with_spread()));
        }
        text.push('\n');
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
        let cases = [
            Case::new("true", ["true"]),
            Case::new("false", ["sh", "-c", "echo why '|' not >&2; echo ever >&2; exit 3"]),
            Case::new("absent", ["/nonexistent/program"]),
        ];
        let outcomes = run(&cases, 4);
        assert_eq!(outcomes[0].samples.as_ref().map(Vec::len), Ok(4));
        let text = table(&outcomes, "true");
        assert!(text.contains("| 1.00 (1.00 to 1.00) |"), "{text}");
        assert!(text.contains("not measured: exit status: 3: why \\| not; ever"), "{text}");
        assert!(text.contains("| absent | not measured: not installed |"), "{text}");
        assert!(!text.contains("before"), "{text}");
    }

    #[test]
    fn other_builds_are_compared_with_the_one_that_is_measured() {
        let outcome = |build, samples: &[f64]| Outcome {
            row: Row { name: "holm run".to_owned(), build },
            samples: Ok(samples.to_vec()),
        };
        let outcomes = [
            outcome(Build::Now, &[2.0, 2.0]),
            outcome(Build::Before, &[3.0, 3.0]),
            outcome(Build::Again, &[2.0, 2.0]),
        ];
        let text = table(&outcomes, "holm run");
        for row in [
            "| holm run, before | 3.00 | 3.00 | 3.00 | 1.50 (1.50 to 1.50) | 1.50 (1.50 to 1.50) |",
            "| holm run, again | 2.00 | 2.00 | 2.00 | 1.00 (1.00 to 1.00) | 1.00 (1.00 to 1.00) |",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }
}
