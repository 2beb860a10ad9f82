//! `holm stat`.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use holm::cgroup::Figures;
use holm::config;
use holm::guest::{self, Guest, Summary};
use holm::net::Traffic;
use holm::pool::{Name, Pool};

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::table::{self, Cell};
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Stat>(
    Group::Guests,
    "stat",
    "Show what running guests use: CPU time, memory, processes, network",
)
.aliases(&["stats", "top"])
.examples(
    "holm stat                                            # since each guest's start\n\
     holm stat --watch --count 3                          # in each second, three times\n\
     holm stat web db --watch --interval 500ms --count 3\n\
     holm stat --json | jq '.[].traffic.sent_bytes'\n\n\
     SENT and RECEIVED are bytes, OPENED and ACCEPTED connections, DROPPED packets that were\n\
     dropped or refused, for reasons that status tells.",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Stat {
    /// The guests [default: all that run]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Go on, with what was used in each interval
    #[arg(long, short)]
    watch: bool,
    /// The time between two looks
    #[arg(long, short, value_name = "TIME", default_value = "1s", requires = "watch")]
    #[arg(value_parser = interval)]
    interval: Duration,
    /// End after so many intervals
    #[arg(long, short, value_name = "N", requires = "watch")]
    count: Option<u64>,
}

/// Shorter ones would only measure the looks themselves.
const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    match config::duration(text)? {
        interval if interval < SHORTEST => Err("at least 100ms".to_owned()),
        interval => Ok(interval),
    }
}

/// A guest, and when it was looked at, in microseconds since 1970.
type Look = (Summary, u64);

impl Run for Stat {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look_if_any()?;
        let looks = |pool: Option<&Pool>| pool.map_or(Ok(Vec::new()), |pool| self.look(pool));
        let mut before = looks(pool.as_ref())?;
        if !self.watch {
            let document = |(guest, at): &Look| output::json(&output::Stat::new(guest, *at));
            let text = if context.json {
                format!("{}\n", output::array(before.iter().map(document)))
            } else {
                let rows = before.iter().map(|(guest, _)| row(guest, None)).collect::<Vec<_>>();
                table::table(&TOTALS, &rows, context.colour, context.width)
            };
            term::print(&text);
            if before.is_empty() && !context.json {
                term::print_error("no guest runs\n");
            }
            return Ok(0);
        }
        let repaint = std::io::stdout().is_terminal() && !context.json;
        for number in 0.. {
            if self.count.is_some_and(|count| number >= count) {
                break;
            }
            std::thread::sleep(self.interval);
            let now = looks(pool.as_ref())?;
            let text = interval_text(&before, &now, context);
            // Whoever has read enough (`holm stat --watch | head`) ends it.
            if show(&text, repaint).is_err() {
                break;
            }
            before = now;
        }
        Ok(0)
    }
}

impl Stat {
    /// The guests that run, of those that are named.
    fn look(&self, pool: &Pool) -> Result<Vec<Look>, Failure> {
        let guests = if self.names.is_empty() {
            guest::list(pool, Figures::Traffic)?
        } else {
            let one =
                |name| Ok::<_, Failure>(guest::summary(&Guest::new(pool, &Name::new(name)?))?);
            self.names.iter().map(|name| one(name)).collect::<Result<_, _>>()?
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let running = guests.into_iter().filter(|guest| guest.record.is_some());
        Ok(running.map(|guest| (guest, now)).collect())
    }
}

/// Names have no control characters, and nothing else here is a guest's words: it needs no escape
/// filter.
fn show(text: &str, repaint: bool) -> std::io::Result<()> {
    const CLEAR: &str = "\x1b[H\x1b[J";
    let mut output = std::io::stdout();
    output.write_all(if repaint { CLEAR } else { "" }.as_bytes())?;
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// What guests have used between two looks.
fn interval_text(before: &[Look], now: &[Look], context: &Context) -> String {
    if context.json {
        let documents = now.iter().map(|(guest, at)| output::json(&output::Stat::new(guest, *at)));
        return format!("{}\n", output::array(documents));
    }
    let earlier: HashMap<&Name, &Look> = before.iter().map(|look| (&look.0.name, look)).collect();
    let rows = now.iter().filter_map(|(guest, at)| {
        let (then, was) = earlier.get(&guest.name)?;
        Some(row(guest, Some((then, at.saturating_sub(*was)))))
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    table::table(&RATES, &rows, context.colour, context.width) + "\n"
}

const TOTALS: [&str; 9] =
    ["NAME", "CPU", "MEMORY", "PIDS", "SENT", "RECEIVED", "OPENED", "ACCEPTED", "DROPPED"];
const RATES: [&str; 9] = [
    "NAME",
    "CPU",
    "MEMORY",
    "PIDS",
    "SENT/s",
    "RECEIVED/s",
    "OPENED/s",
    "ACCEPTED/s",
    "DROPPED/s",
];

/// A guest's row: totals since its start, or in a second since an earlier look so many microseconds
/// ago.
fn row(guest: &Summary, since: Option<(&Summary, u64)>) -> Vec<Cell> {
    let usage = guest.usage.unwrap_or_default();
    let cell = |value: Option<String>| Cell::from(value.unwrap_or_else(|| "-".to_owned()));
    let before = since.map(|(before, _)| before);
    let cpu_before = before.and_then(|before| before.usage).map_or(0, |usage| usage.cpu_usec);
    let cpu = match since {
        None => term::cpu_time(usage.cpu_usec),
        Some((_, usec)) => percent(usage.cpu_usec.saturating_sub(cpu_before), usec),
    };
    let traffic = |of: fn(&Traffic) -> u64| {
        let now = of(guest.traffic.as_ref()?);
        let Some((before, usec)) = since else { return Some(now) };
        let before = before.traffic.as_ref().map_or(0, of);
        Some(per_second(now.saturating_sub(before), usec))
    };
    let bytes = |of| cell(traffic(of).map(term::size));
    let number = |of| cell(traffic(of).map(|number| number.to_string()));
    vec![
        Cell::from(&guest.name),
        Cell::from(cpu),
        cell(usage.memory.map(term::size)),
        cell(usage.pids.map(|pids| pids.to_string())),
        bytes(|traffic| traffic.sent.bytes),
        bytes(|traffic| traffic.received.bytes),
        number(|traffic| traffic.opened),
        number(|traffic| traffic.accepted),
        number(|traffic| traffic.dropped.iter().map(|(_, packets)| packets).sum()),
    ]
}

/// So many in `usec` microseconds, by second.
fn per_second(count: u64, usec: u64) -> u64 {
    let rate = u128::from(count) * 1_000_000 / u128::from(usec.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// CPU time in a span, both in microseconds, in percent of one CPU.
fn percent(used: u64, span: u64) -> String {
    let tenths = u128::from(used) * 1000 / u128::from(span.max(1));
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_by_second() {
        assert_eq!(per_second(300, 2_000_000), 150);
        assert_eq!(per_second(u64::MAX, 1_000_000), u64::MAX);
        assert_eq!(
            (percent(1_500_000, 1_000_000), percent(7, 0)),
            ("150.0%".into(), "700.0%".into())
        );
    }

    #[test]
    fn intervals_are_not_shorter_than_a_look() {
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        assert!(interval("10ms").is_err() && interval("x").is_err());
    }
}
