//! `holm ls` and `holm start` beside 1, 50 and 200 running guests; fifty starts at once.

use std::time::Instant;

use crate::race::{Contestant, interleaved};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;
use crate::stats::Summary;

const COUNTS: [usize; 3] = [1, 50, 200];
const AT_ONCE: usize = 50;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut text = String::from(
        "Milliseconds with so many minimal guests running (median, p10 to p90):\n\n| guests | `holm ls` | `holm start` of one more |\n|---:|---:|---:|\n",
    );
    let mut sleepers = Sleepers::new(stage);
    for count in COUNTS {
        let new = sleepers.create_up_to(count)?;
        sleepers.start(&new)?;
        let ls = interleaved(&[Contestant::new("ls", stage.holm(&["ls"]))], n);
        let ls =
            ls.into_iter().next().map_or(Err("no race".to_owned()), |outcome| outcome.samples)?;
        let starts = starts(stage, n)?;
        text += &format!("| {count} | {} | {} |\n", spread(&ls), spread(&starts));
    }
    drop(sleepers);

    let mut sleepers = Sleepers::new(stage);
    let names = sleepers.create_up_to(AT_ONCE)?;
    let mut samples = Vec::new();
    for _ in 0..n.min(20) {
        let begin = Instant::now();
        sleepers.start(&names)?;
        samples.push(begin.elapsed().as_secs_f64() * 1e3);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        stage.run_holm(&[&["kill"], &all[..]].concat())?;
    }
    let each = Summary::of(&samples).median / 50.0;
    text += &format!(
        "\n`holm start` of {AT_ONCE} minimal guests by one command: {} ms in all, {each:.2} ms each.\n",
        spread(&samples)
    );
    Ok(text)
}

/// Starts of one more guest; its kill between two of them is not counted.
fn starts(stage: &Stage, n: usize) -> Result<Vec<f64>, String> {
    let name = "bench-more";
    let names = [name.to_owned()];
    stage.run_holm(&[
        "create",
        name,
        "--base",
        "minimal",
        "--set",
        "net.mode=none",
        "--",
        "/bin/sleep",
        "1000000",
    ])?;
    let one = |_| {
        let begin = Instant::now();
        stage.run_holm(&["start", name])?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        stage.run_holm(&["kill", name])?;
        Ok(took)
    };
    let samples: Result<Vec<f64>, String> = (0..n).map(one).collect();
    stage.drop_guests(&names);
    samples
}

fn spread(samples: &[f64]) -> String {
    let Summary { median, p10, p90 } = Summary::of(samples);
    format!("{median:.2} ({p10:.2} to {p90:.2})")
}
