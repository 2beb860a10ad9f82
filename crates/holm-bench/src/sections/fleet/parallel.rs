//! Figure 2 of the OLS paper: all guests started at once, and what the CPUs do meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::bound::{self, Bound};
use super::guests::{Fleet, Kind};
use crate::build::{Holm, SLEEPER};
use crate::cpu_time::CpuTime;
use crate::meminfo::drop_caches;
use crate::plot::{Axes, Curve, draw};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;

/// How often the CPUs are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// A start of all guests.
struct Startup {
    kind: Kind,
    guests: usize,
    /// Until the last was up.
    seconds: f64,
    /// Seconds since the begin, and what all CPUs did since the point before.
    points: Vec<(f64, CpuTime)>,
    end: Option<String>,
}

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    stage.servers()?;
    let holm = &stage.holms[0];
    let memory = stage.memory.map_or(String::new(), |mib| {
        format!(" All guests together had {mib} MiB of memory, file cache included.")
    });
    let mut text = format!(
        "The same guests by one `holm start`, until the last was up; caches dropped before.{memory} \
         Theirs (200\nguests, 1 GiB and 2 GiB of memory): 110 minutes separate, 20 unified.\n\n\
         | | guests | seconds | each | kernel | programs | iowait | idle |\n|---|---:|---:|---:|---:|\
         ---:|---:|---:|\n",
    );
    for kind in [Kind::Separate, Kind::Unified] {
        let startup = startup(holm, kind, stage)?;
        text += &row(&startup);
        plot(stage, &startup)?;
    }
    text += "\nThe last four columns are shares of the CPUs' time.\n";
    for kind in [Kind::Separate, Kind::Unified] {
        let name = kind.name();
        text += &format!("\n![CPU time over time, {name}](fleet-parallel-{name}.svg)\n");
    }
    Ok(text)
}

fn startup(holm: &Holm, kind: Kind, stage: &Stage) -> Result<Startup, String> {
    let settings: &[&str] = if stage.memory.is_some() { &bound::SETTINGS } else { &[] };
    let mut fleet = Fleet::new(holm, kind, settings)?;
    let end = fleet.create_up_to(stage.guests)?;
    // While it runs, the cgroup of all guests is there.
    let mut sleeper = Sleepers::new(holm);
    let names = sleeper.create_more(1, &[&SLEEPER[..], settings].concat())?;
    sleeper.start(&names)?;
    let _bound = stage.memory.map(|mib| Bound::set(&names[0], mib)).transpose()?;
    drop_caches()?;
    let (begin, up) = (Instant::now(), AtomicBool::new(false));
    let (started, points) = std::thread::scope(|scope| {
        let looks = scope.spawn(|| look(begin, &up));
        let started = fleet.start(&fleet.names);
        let seconds = begin.elapsed().as_secs_f64();
        up.store(true, Ordering::Release);
        (started.map(|()| seconds), looks.join())
    });
    let points = points.map_err(|_| "the thread that looks at the CPUs ended")??;
    Ok(Startup { kind, guests: fleet.names.len(), seconds: started?, points, end })
}

/// Looks at the CPUs until the guests are up.
fn look(begin: Instant, up: &AtomicBool) -> Result<Vec<(f64, CpuTime)>, String> {
    let (mut points, mut last) = (Vec::new(), CpuTime::now()?);
    while !up.load(Ordering::Acquire) {
        std::thread::sleep(INTERVAL);
        let now = CpuTime::now()?;
        points.push((begin.elapsed().as_secs_f64(), now.since(last)));
        last = now;
    }
    Ok(points)
}

fn row(startup: &Startup) -> String {
    let Startup { kind, guests, seconds, points, end } = startup;
    let sum = |of: fn(&CpuTime) -> f64| points.iter().map(|(_, span)| of(span)).sum::<f64>();
    let all = sum(CpuTime::all);
    let share = |of| 100.0 * sum(of) / all;
    #[expect(clippy::cast_precision_loss, reason = "some hundred guests")]
    let each = seconds / *guests as f64;
    let end = end.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    format!(
        "| {} | {guests}{end} | {seconds:.0} | {each:.2} | {:.0} % | {:.0} % | {:.0} % | {:.0} % |\n",
        kind.name(),
        share(|span| span.kernel),
        share(|span| span.programs),
        share(|span| span.iowait),
        share(|span| span.idle)
    )
}

fn plot(stage: &Stage, startup: &Startup) -> Result<(), String> {
    let curve = |name: &str, of: fn(&CpuTime) -> f64| {
        let point = |(at, span): &(f64, CpuTime)| (*at, 100.0 * of(span) / span.all());
        Curve { name: name.to_owned(), points: startup.points.iter().map(point).collect() }
    };
    let curves = [
        curve("programs and kernel", |span| span.programs + span.kernel),
        curve("iowait", |span| span.iowait),
    ];
    let name = startup.kind.name();
    let title = format!("Start of {} guests at once, {name}", startup.guests);
    let axes = Axes { title: &title, x: "seconds", y: "percent of the CPUs" };
    draw(&stage.plot(&format!("fleet-parallel-{name}")), &axes, &curves)
}
