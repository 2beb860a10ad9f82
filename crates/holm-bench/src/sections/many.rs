//! `holm ls` and `holm start` beside 1 to 1000 running guests; fifty and a thousand starts at once.

use std::time::Instant;

use crate::build::{Holm, SLEEPER};
use crate::rounds::{Case, Outcome, Row, before_to_now, run as measure, take_turns};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;
use crate::stats::Summary;

const COUNTS: [usize; 4] = [1, 50, 200, 1000];
/// How many starts at once, and in how many rounds: they take long enough that a few tell.
const AT_ONCE: [(usize, usize); 2] = [(50, 20), (1000, 3)];

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let beside = beside_others(&stage.holms, n)?;
    let mut text = beside + "\n";
    for (count, rounds) in AT_ONCE {
        text += &at_once(&stage.holms, count, n.min(rounds))?;
        text.push('\n');
    }
    Ok(text)
}

fn beside_others(holms: &[Holm], n: usize) -> Result<String, String> {
    let mut text = format!(
        "Milliseconds with so many minimal guests running{} (median, p10 to p90):\n\n\
         | guests | `holm ls` | `holm start` of one more |\n|---|---:|---:|\n",
        if holms.len() > 1 { " in the Holm root of each build" } else { "" }
    );
    let mut guests: Vec<Sleepers<'_>> = holms.iter().map(Sleepers::new).collect();
    for count in COUNTS {
        for sleepers in &mut guests {
            let new = sleepers.create_up_to(count)?;
            sleepers.start(&new)?;
        }
        let name = count.to_string();
        let ls: Vec<Case> =
            holms.iter().map(|holm| Case::of(holm, &name, holm.argv(&["ls"]))).collect();
        let (ls, starts) = (measure(&ls, n), starts(holms, &name, n)?);
        for (ls, start) in ls.iter().zip(&starts) {
            let title = ls.row.title();
            let (ls, start) = (ls.samples.clone()?, start.samples.clone()?);
            text += &format!("| {title} | {} | {} |\n", spread(&ls), spread(&start));
        }
        let ratios = |outcomes: &[Outcome]| before_to_now(outcomes, &outcomes.last()?.row);
        if let (Some(ls), Some(starts)) = (ratios(&ls), ratios(&starts)) {
            let (ls, starts) = (ls.with_spread(), starts.with_spread());
            text += &format!("| {count}, before : now | {ls} | {starts} |\n");
        }
    }
    Ok(text)
}

/// Starts of one more guest; its kill between two of them is not counted.
fn starts(holms: &[Holm], row: &str, n: usize) -> Result<Vec<Outcome>, String> {
    let guests: Vec<String> = holms.iter().map(|holm| holm.guest("more")).collect();
    for (holm, guest) in holms.iter().zip(&guests) {
        holm.create(guest, &SLEEPER)?;
    }
    let rows = holms.iter().map(|holm| Row::of(holm, row)).collect();
    let outcomes = take_turns(rows, n, 0, |index| {
        let (holm, guest) = (&holms[index], &guests[index]);
        let begin = Instant::now();
        holm.run(&["start", guest])?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        holm.run(&["kill", guest])?;
        Ok(took)
    });
    for (holm, guest) in holms.iter().zip(guests) {
        holm.remove_guests(&[guest]);
    }
    Ok(outcomes)
}

/// Starts of many guests by one command.
fn at_once(holms: &[Holm], count: usize, n: usize) -> Result<String, String> {
    let mut guests: Vec<Sleepers<'_>> = holms.iter().map(Sleepers::new).collect();
    for sleepers in &mut guests {
        sleepers.create_up_to(count)?;
    }
    let rows = holms.iter().map(|holm| Row::of(holm, "`holm start`")).collect();
    let outcomes = take_turns(rows, n, 0, |index| {
        let sleepers = &guests[index];
        let begin = Instant::now();
        sleepers.start(&sleepers.names)?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        let names: Vec<&str> = sleepers.names.iter().map(String::as_str).collect();
        sleepers.holm.run(&[&["kill"], &names[..]].concat())?;
        Ok(took)
    });
    let mut text = format!(
        "{count} minimal guests by one command, milliseconds (median, p10 to p90):\n\n\
         | | in all | each |\n|---|---:|---:|\n"
    );
    for outcome in &outcomes {
        let samples = outcome.samples.clone()?;
        #[expect(clippy::cast_precision_loss, reason = "a thousand at most")]
        let each = Summary::of(&samples).median / count as f64;
        text += &format!("| {} | {} | {each:.2} |\n", outcome.row.title(), spread(&samples));
        if let Some(ratio) = before_to_now(&outcomes, &outcome.row) {
            text += &format!("| before : now | {} | |\n", ratio.with_spread());
        }
    }
    Ok(text)
}

fn spread(samples: &[f64]) -> String {
    Summary::of(samples).with_spread()
}
