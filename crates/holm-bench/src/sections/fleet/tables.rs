//! Tables 1, 2 and 3 of the OLS paper: guests started one after another, memory after each.

use std::time::Instant;

use super::guests::{Fleet, Kind, Resident};
use crate::build::Holm;
use crate::meminfo::{Memory, drop_caches};
use crate::plot::{Axes, Curve, draw};
use crate::stage::Stage;

/// A series ends when less memory than this is available, in KiB: the host must go on.
const RESERVE: i64 = 1 << 20;
const COLUMNS: &str = "Active | Buffers | Cache | Anon | Mapped | Slab | Recl. | Unrecl.";
/// What separate guests took more of in the paper's Table 3: the time, and then the columns.
const THEIRS: [&str; 9] =
    ["21.0 %", "79.5 %", "70.7 %", "-4.2 %", "0.0 %", "203.0 %", "7.8 %", "5.4 %", "11.4 %"];

/// What was measured when a guest was up.
struct Step {
    /// Since the first began.
    seconds: f64,
    memory: Memory,
}

struct Series {
    kind: Kind,
    steps: Vec<Step>,
    /// Bytes of disk for each guest, after all have run.
    disk: u64,
    resident: Resident,
    /// Why it has no more guests.
    end: Option<String>,
}

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    stage.servers()?;
    let holm = &stage.holms[0];
    let unified = series(holm, Kind::Unified, stage.guests)?;
    let separate = series(holm, Kind::Separate, stage.guests)?;
    let mut text = String::from(
        "Debian 13 with systemd, rsyslog, cron, sshd, apache2, postfix and postgresql, started one \
         after another,\neach when the one before was up; caches dropped before the first. KiB of \
         /proc/meminfo beyond those\nbefore the first; seconds since the first. `separate`: each \
         file of the base was written to once in\neach guest, which gives it copies of its own.\n\n",
    );
    for series in [&separate, &unified] {
        text += &table(series);
    }
    text += &compared(&separate, &unified);
    plot(stage, &[&separate, &unified])?;
    Ok(text + "\n![Active and mapped memory](fleet-memory.svg)\n")
}

fn series(holm: &Holm, kind: Kind, count: usize) -> Result<Series, String> {
    let mut fleet = Fleet::new(holm, kind, &[])?;
    let mut end = fleet.create_up_to(count)?;
    drop_caches()?;
    let (before, begin) = (Memory::now()?, Instant::now());
    let mut steps = Vec::new();
    for name in &fleet.names {
        fleet.start(std::slice::from_ref(name))?;
        let memory = Memory::now()?;
        steps.push(Step { seconds: begin.elapsed().as_secs_f64(), memory: memory.since(&before) });
        if memory.available < RESERVE {
            end = Some("less than 1 GiB of memory was available".to_owned());
            break;
        }
    }
    let resident = Resident::now();
    let disk = fleet.disk()? / fleet.names.len().max(1) as u64;
    Ok(Series { kind, steps, disk, resident, end })
}

/// The first three guests and the last three, as in the paper.
fn table(series: &Series) -> String {
    let Series { kind, steps, disk, resident, end } = series;
    let end = end.as_ref().map_or(String::new(), |why| format!(", then {why}"));
    #[expect(clippy::cast_precision_loss, reason = "a few GiB")]
    let disk = *disk as f64 / f64::from(1 << 20);
    let mut text = format!(
        "{} guests {}{end}; {disk:.1} MiB of disk each. Their processes have {} MiB mapped and \
         resident (RSS), which\nare {} MiB of memory (PSS).\n\n| Guest | Time | {COLUMNS} |\n\
         |---|{}\n",
        steps.len(),
        kind.name(),
        resident.rss / 1024,
        resident.pss / 1024,
        "---:|".repeat(9)
    );
    for (index, Step { seconds, memory }) in steps.iter().enumerate() {
        if index < 3 || index + 3 >= steps.len() {
            let cells: Vec<String> = memory.columns().iter().map(i64::to_string).collect();
            text += &format!("| {:03} | {seconds:.0} | {} |\n", index + 1, cells.join(" | "));
        }
    }
    text + "\n"
}

/// How much more separate guests take than as many unified ones.
fn compared(separate: &Series, unified: &Series) -> String {
    let count = separate.steps.len().min(unified.steps.len());
    let Some(at) = count.checked_sub(1) else { return String::new() };
    let (one, other) = (&separate.steps[at], &unified.steps[at]);
    let mut text = format!(
        "With {count} guests each:\n\n| | separate beyond unified | overhead | theirs, of 200 |\n\
         |---|---:|---:|---:|\n"
    );
    let mut row = |name: &str, unit: &str, one: f64, other: f64, theirs: &str| {
        let (more, percent) = (one - other, (one / other - 1.0) * 100.0);
        text += &format!("| {name} | {more:.0} {unit} | {percent:.1} % | {theirs} |\n");
    };
    row("Time", "s", one.seconds, other.seconds, THEIRS[0]);
    let columns = one.memory.columns().into_iter().zip(other.memory.columns());
    for ((name, (one, other)), theirs) in COLUMNS.split(" | ").zip(columns).zip(&THEIRS[1..]) {
        #[expect(clippy::cast_precision_loss, reason = "KiB of one machine")]
        row(name, "KiB", one as f64, other as f64, theirs);
    }
    text
}

fn plot(stage: &Stage, series: &[&Series]) -> Result<(), String> {
    let mut curves = Vec::new();
    for (what, of) in [
        ("active", (|memory| memory.active) as fn(&Memory) -> i64),
        ("mapped", |memory| memory.mapped),
    ] {
        for Series { kind, steps, .. } in series {
            #[expect(clippy::cast_precision_loss, reason = "KiB of one machine")]
            let point = |(index, step): (usize, &Step)| {
                ((index + 1) as f64, of(&step.memory) as f64 / f64::from(1 << 20))
            };
            let name = format!("{what}, {}", kind.name());
            curves.push(Curve { name, points: steps.iter().enumerate().map(point).collect() });
        }
    }
    let title = "Memory of guests that share their files, and of separate ones";
    draw(&stage.plot("fleet-memory"), &Axes { title, x: "guests", y: "GiB" }, &curves)
}
