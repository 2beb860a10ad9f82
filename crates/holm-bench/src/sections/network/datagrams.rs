//! Datagrams that more and more guests send at the same time (OLS paper, 3.2).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::guests::{Guests, KINDS, NATIVE, PRIVATE};
use super::wire::Wire;
use super::{WARM_UP, client};
use crate::build::SLEEP;
use crate::cpu_time::CpuTime;
use crate::rounds::{Outcome, Row, take_turns};
use crate::stage::Stage;
use crate::stats::Summary;

/// How many send, in turn.
const COUNTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes of a datagram.
const SIZES: [u32; 3] = [64, 512, 1472];
/// What all send together.
const TOTAL: usize = 128_000;

struct Datagrams<'a> {
    stage: &'a Stage,
    wire: &'a Wire,
    directory: &'a str,
}

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let (wire, directory) = super::prepare(stage)?;
    wire.add_addresses(KINDS.len(), COUNTS[COUNTS.len() - 1])?;
    let mount = format!("{directory}:/bench:ro");
    let (kinds, settings) = ([NATIVE, PRIVATE], ["-v", &mount]);
    let command = |_, _| vec!["/bin/sleep".to_owned(), SLEEP.to_owned()];
    let mut guests = Guests::new(stage, &wire, "minimal", &kinds, &settings, &command);
    let datagrams = Datagrams { stage, wire: &wire, directory: &directory };
    let mut tables = SIZES.map(|size| (size, Table::default()));
    for count in COUNTS {
        eprintln!("holm-bench: datagrams of {count}");
        guests.start_up_to(count)?;
        for (size, table) in &mut tables {
            table.add(count, datagrams.measure(count, *size, n)?);
        }
    }
    let mut text = INTRODUCTION.to_owned();
    for (size, table) in tables {
        text += &format!("\n### {size} bytes\n\n{}", table.markdown());
    }
    Ok(text)
}

impl Datagrams<'_> {
    /// For each kind the milliseconds that all took, and those that the CPUs were busy.
    fn measure(&self, count: usize, size: u32, n: usize) -> Result<Vec<Measured>, String> {
        let rows: Vec<Row> = KINDS[..=PRIVATE].iter().map(|kind| Row::new(kind)).collect();
        let mut busy = vec![Vec::new(); rows.len()];
        let outcomes = take_turns(rows, n, WARM_UP, |kind| {
            let (took, cpu) = self.once(kind, count, size)?;
            busy[kind].push(cpu);
            Ok(took)
        });
        let counted = |(Outcome { samples, .. }, mut busy): (Outcome, Vec<f64>)| {
            Ok(Measured { took: samples?, busy: busy.split_off(WARM_UP) })
        };
        outcomes.into_iter().zip(busy).map(counted).collect()
    }

    fn once(&self, kind: usize, count: usize, size: u32) -> Result<(f64, f64), String> {
        let (load, each) = (format!("udp-{size}"), TOTAL / count);
        let start = |number| {
            let is_guest = kind == NATIVE || kind == PRIVATE;
            let guest = is_guest.then(|| Guests::name(kind, number));
            let argv =
                client(self.stage, self.directory, guest.as_deref(), (&load, each), &["together"]);
            Sender::start(&self.wire.host.argv(&argv))
        };
        let mut senders: Vec<Sender> = (0..count).map(start).collect::<Result<_, _>>()?;
        let (begin, cpu) = (Instant::now(), CpuTime::now()?);
        senders.iter_mut().try_for_each(Sender::begin)?;
        senders.iter_mut().try_for_each(|sender| sender.line().map(drop))?;
        let (took, cpu) = (begin.elapsed(), CpuTime::now()?.since(cpu));
        senders.into_iter().try_for_each(Sender::end)?;
        Ok((took.as_secs_f64() * 1e3, (cpu.kernel + cpu.programs) * 1e3))
    }
}

/// A client that waits for the others.
struct Sender {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Sender {
    fn start(argv: &[String]) -> Result<Self, String> {
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", argv[0]))?;
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut sender = Self { child, output };
        if sender.line()? == "ready" { Ok(sender) } else { Err("a client is not ready".to_owned()) }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).map_err(|e| format!("a client: {e}"))?;
        if read == 0 { Err("a client ended".to_owned()) } else { Ok(line.trim().to_owned()) }
    }

    fn begin(&mut self) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("no pipe")?;
        input.write_all(b"!").map_err(|e| format!("a client: {e}"))
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|e| format!("a client: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("a client: {status}")) }
    }
}

struct Measured {
    took: Vec<f64>,
    busy: Vec<f64>,
}

/// Rows by the number of senders.
#[derive(Default)]
struct Table(Vec<(usize, Vec<Measured>)>);

impl Table {
    fn add(&mut self, count: usize, measured: Vec<Measured>) {
        self.0.push((count, measured));
    }

    fn markdown(&self) -> String {
        let rate = |kind: &Measured| TOTAL_F / Summary::of(&kind.took).median;
        let each = |kind: &Measured| Summary::of(&kind.busy).median * 1e3 / TOTAL_F;
        let mut text = String::from(HEAD);
        for (count, kinds) in &self.0 {
            let [host, again, native, private] = &kinds[..] else { continue };
            let times = |kind: &Measured| Summary::of_ratios(&kind.busy, &host.busy).with_spread();
            text += &format!(
                "| {count} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {} | {} | {} |\n",
                rate(host),
                rate(native),
                rate(private),
                each(host),
                each(native),
                each(private),
                times(again),
                times(native),
                times(private)
            );
        }
        text
    }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
const TOTAL_F: f64 = TOTAL as f64;

const HEAD: &str = "\
| senders | host, 1000/s | native | private | host, µs of CPU each | native | private | \
host again, times host | native | private |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

const INTRODUCTION: &str = "\
128000 datagrams in each run, sent by so many processes at once to the other machine: processes of
the host, or one in each of so many guests. All have one CPU, and the receiver has another. CPU time
is that of the whole machine, in steps of 10 ms, the receiver's included; `times host` is the ratio
of CPU time (p10 to p90 of pairs). `host again` is the same as `host`: how far two equal rows are
apart.\n";
