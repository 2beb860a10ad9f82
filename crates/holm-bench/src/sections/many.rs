//! `holm ls`, `holm df` and `holm start` beside 1 to 1000 running guests, without networks and with
//! private ones; fifty and a thousand starts at once.

use std::thread;
use std::time::{Duration, Instant};

use crate::build::{Holm, SLEEPER};
use crate::cpu_time::{self, CpuTime};
use crate::rounds::{Case, Outcome, Row, run as measure, take_turns, times_now};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;
use crate::stats::Summary;

const COUNTS: [usize; 4] = [1, 50, 200, 1000];
/// After which the kernel has taken down the network namespace of a guest that has ended: a start
/// right after that waits for its interface to go.
const TAKEN_DOWN: Duration = Duration::from_millis(300);
/// How many starts at once, and in how many rounds: they take long enough that a few tell.
const AT_ONCE: [(usize, usize); 2] = [(50, 20), (1000, 11)];

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut text = String::new();
    for (others, mode) in [("", "net.mode=none"), (" with private networks", "net.mode=private")] {
        text += &beside_others(&stage.holms, others, mode, n)?;
        text.push('\n');
    }
    for (count, rounds) in AT_ONCE {
        text += &at_once(&stage.holms, count, n.min(rounds))?;
        text.push('\n');
    }
    Ok(text)
}

fn beside_others(holms: &[Holm], others: &str, mode: &str, n: usize) -> Result<String, String> {
    let settings = [&SLEEPER[..], &["--set", mode]].concat();
    let mut text = format!(
        "Milliseconds with so many minimal guests{others} running{} (median, p10 to p90):\n\n\
         | guests | `holm ls` | `holm df` | `holm start` of one more |\n|---|---:|---:|---:|\n",
        if holms.len() > 1 { " in the Holm root of each build" } else { "" }
    );
    let mut guests: Vec<Sleepers<'_>> = holms.iter().map(Sleepers::new).collect();
    for count in COUNTS {
        for sleepers in &mut guests {
            let new = sleepers.create_more(count - sleepers.names.len(), &settings)?;
            sleepers.start(&new)?;
        }
        let name = count.to_string();
        let looks = |verb: &str| {
            let case = |holm: &Holm| Case::of(holm, &name, holm.argv(&[verb]));
            measure(&holms.iter().map(case).collect::<Vec<Case>>(), n)
        };
        let columns = [looks("ls"), looks("df"), starts(holms, &name, &settings, n)];
        for (index, Outcome { row, .. }) in columns[0].iter().enumerate() {
            let cells: Result<Vec<String>, String> =
                columns.iter().map(|column| Ok(spread(&column[index].samples.clone()?))).collect();
            text += &line(&row.title(), &cells?);
        }
        for Outcome { row, .. } in &columns[0] {
            let ratios = columns.iter().filter_map(|column| times_now(column, row));
            let cells: Vec<String> = ratios.map(|ratio| ratio.with_spread()).collect();
            if !cells.is_empty() {
                text += &line(&format!("{}, times now", row.title()), &cells);
            }
        }
    }
    Ok(text)
}

/// Starts of one more guest.
fn starts(holms: &[Holm], row: &str, settings: &[&str], n: usize) -> Vec<Outcome> {
    let rows = holms.iter().map(|holm| Row::of(holm, row)).collect();
    take_turns(rows, n, 0, |index| {
        start_new(&holms[index], &[holms[index].guest("more")], settings).map(|(took, _)| took)
    })
}

/// Starts of many guests by one command.
fn at_once(holms: &[Holm], count: usize, n: usize) -> Result<String, String> {
    let rows = holms.iter().map(|holm| Row::of(holm, "`holm start`")).collect();
    let mut meanwhile = Vec::with_capacity(n);
    let outcomes = take_turns(rows, n, 0, |index| {
        let holm = &holms[index];
        let names: Vec<String> = (0..count).map(|number| holm.guest(&number.to_string())).collect();
        let (took, cpu) = start_new(holm, &names, &SLEEPER)?;
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
fn start_new(holm: &Holm, names: &[String], settings: &[&str]) -> Result<(f64, CpuTime), String> {
    for name in names {
        holm.create(name, settings)?;
    }
    let args = |verb| -> Vec<&str> {
        [verb].into_iter().chain(names.iter().map(String::as_str)).collect()
    };
    let timed = || {
        holm.run(&args("start"))?;
        holm.run(&args("kill"))?;
        thread::sleep(TAKEN_DOWN);
        let (begin, cpu) = (Instant::now(), CpuTime::now()?);
        holm.run(&args("start"))?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        Ok((took, CpuTime::now()?.since(cpu)))
    };
    let took = timed();
    holm.remove_guests(names);
    took
}

fn line(title: &str, cells: &[String]) -> String {
    format!("| {title} | {} |\n", cells.join(" | "))
}

fn spread(samples: &[f64]) -> String {
    Summary::of(samples).with_spread()
}
