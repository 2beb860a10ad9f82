//! `holm ls` and `holm start` beside 1 to 1000 running guests; fifty and a thousand starts at once.

use std::time::Instant;

use crate::build::{Holm, SLEEPER};
use crate::cpu_time::{self, CpuTime};
use crate::rounds::{Case, Outcome, Row, run as measure, take_turns, times_now};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;
use crate::stats::Summary;

const COUNTS: [usize; 4] = [1, 50, 200, 1000];
/// How many starts at once, and in how many rounds: they take long enough that a few tell.
const AT_ONCE: [(usize, usize); 2] = [(50, 20), (1000, 11)];

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
        let (ls, starts) = (measure(&ls, n), starts(holms, &name, n));
        for (ls, start) in ls.iter().zip(&starts) {
            let title = ls.row.title();
            let (ls, start) = (ls.samples.clone()?, start.samples.clone()?);
            text += &format!("| {title} | {} | {} |\n", spread(&ls), spread(&start));
        }
        for Outcome { row, .. } in &ls {
            if let (Some(ls), Some(starts)) = (times_now(&ls, row), times_now(&starts, row)) {
                let (title, ls, starts) = (row.title(), ls.with_spread(), starts.with_spread());
                text += &format!("| {title}, times now | {ls} | {starts} |\n");
            }
        }
    }
    Ok(text)
}

/// Starts of one more guest.
fn starts(holms: &[Holm], row: &str, n: usize) -> Vec<Outcome> {
    let rows = holms.iter().map(|holm| Row::of(holm, row)).collect();
    take_turns(rows, n, 0, |index| {
        start_new(&holms[index], &[holms[index].guest("more")]).map(|(took, _)| took)
    })
}

/// Starts of many guests by one command.
fn at_once(holms: &[Holm], count: usize, n: usize) -> Result<String, String> {
    let rows = holms.iter().map(|holm| Row::of(holm, "`holm start`")).collect();
    let mut meanwhile = Vec::with_capacity(n);
    let outcomes = take_turns(rows, n, 0, |index| {
        let holm = &holms[index];
        let names: Vec<String> = (0..count).map(|number| holm.guest(&number.to_string())).collect();
        let (took, cpu) = start_new(holm, &names)?;
        // The first is the build that is measured.
        meanwhile.extend((index == 0).then_some(cpu));
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
        if let Some(ratio) = times_now(&outcomes, &outcome.row) {
            let title = outcome.row.title();
            text += &format!("| {title}, times now | {} | |\n", ratio.with_spread());
        }
    }
    text += &format!("\n{}", cpu_time::told(&meanwhile));
    Ok(text)
}

/// Milliseconds of one command that starts new guests, which have run once, and what all CPUs did
/// meanwhile. Where the filesystem happens to put their directories makes a tenth of a start, so
/// each round has others.
fn start_new(holm: &Holm, names: &[String]) -> Result<(f64, CpuTime), String> {
    for name in names {
        holm.create(name, &SLEEPER)?;
    }
    let args = |verb| -> Vec<&str> {
        [verb].into_iter().chain(names.iter().map(String::as_str)).collect()
    };
    let timed = || {
        holm.run(&args("start"))?;
        holm.run(&args("kill"))?;
        let (begin, cpu) = (Instant::now(), CpuTime::now()?);
        holm.run(&args("start"))?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        Ok((took, CpuTime::now()?.since(cpu)))
    };
    let took = timed();
    holm.remove_guests(names);
    took
}

fn spread(samples: &[f64]) -> String {
    Summary::of(samples).with_spread()
}
