//! Figures 3 and 4 of the `CoreLab` paper: memory, swap and disk by the number of guests, beside
//! other ways to run the same system.

mod systems;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::meminfo::{Memory, drop_caches};
use crate::plot::{Axes, Curve, draw};
use crate::rounds::cell;
use crate::stage::Stage;
use systems::{Ready, System, systems};

/// From 0 by so many, as in the paper.
const STEP: usize = 5;
/// A series ends when less memory than this is available, in KiB: the host must go on.
const RESERVE: i64 = 1 << 20;
/// How long a guest may take until it is up. Machines are emulated.
const LIMIT: Duration = Duration::from_mins(5);

/// With so many guests.
struct Point {
    guests: usize,
    seconds: f64,
    memory: Memory,
    /// Bytes on the disk.
    disk: f64,
}

struct Series {
    name: &'static str,
    points: Result<Vec<Point>, String>,
    end: Option<String>,
}

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    stage.debian()?;
    let mut all = Vec::new();
    for (name, system) in systems(stage) {
        eprintln!("holm-bench: {name}");
        let mut series = Series { name, points: Ok(Vec::new()), end: None };
        series.points =
            system.and_then(|mut system| grow(&mut *system, stage.guests, &mut series.end));
        all.push(series);
    }
    let mut text = format!(
        "Debian 13 with systemd, dbus and logind, the same files, started one after another; caches \
         dropped before\nthe first. Memory is what is no longer available (MemTotal without \
         MemAvailable), disk what the guests\nhave added. The machine has no swap: {} KiB of it were \
         used. Machines of QEMU have 512 MiB each, and are\nemulated where KVM cannot be used: their \
         memory says something, their time does not.\n\n\
         | | guests | seconds for each | memory, MiB | for each, of the last {} | disk, MiB | for each |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
        Memory::now()?.swap,
        LAST
    );
    text.extend(all.iter().map(row));
    plot(stage, "growth-memory", "memory, MiB", &all, |point| mib(point.memory.used))?;
    plot(stage, "growth-disk", "disk, MiB", &all, |point| point.disk / MIB)?;
    text += "\nTheirs, with 4 GB: containers on btrfs had used it up at 110, machines of KVM at 30.\n\n\
             ![Memory by the number of guests](growth-memory.svg)\n\n\
             ![Disk by the number of guests](growth-disk.svg)\n";
    Ok(text)
}

const MIB: f64 = (1 << 20) as f64;
/// The slope is taken of so many guests: the first ones fill caches that all have in common.
const LAST: usize = 50;

fn mib(kib: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "memory of one machine")]
    let kib = kib as f64;
    kib / 1024.0
}

/// Starts guests up to `count`, or to as many as the system is to have.
fn grow(
    system: &mut dyn System,
    count: usize,
    end: &mut Option<String>,
) -> Result<Vec<Point>, String> {
    let (count, step) = system.most().map_or((count, STEP), |most| (most.min(count), 1));
    system.prepare()?;
    drop_caches()?;
    let (before, disk_before) = (Memory::now()?, system.disk()?);
    let begin = Instant::now();
    let mut points = Vec::new();
    for guests in 0..=count {
        if guests > 0 {
            let ready = system.start(guests - 1)?;
            wait_for(&ready)?;
        }
        if guests % step != 0 && guests != count {
            continue;
        }
        let memory = Memory::now()?.since(&before);
        let disk = system.disk()? - disk_before;
        points.push(Point { guests, seconds: begin.elapsed().as_secs_f64(), memory, disk });
        if memory.available < RESERVE {
            *end = Some("less than 1 GiB of memory was available".to_owned());
            break;
        }
    }
    Ok(points)
}

fn wait_for(Ready { file, text }: &Ready) -> Result<(), String> {
    let begin = Instant::now();
    let is_there = |file: &Path| {
        std::fs::read(file).is_ok_and(|found| String::from_utf8_lossy(&found).contains(text))
    };
    while !is_there(file) {
        if begin.elapsed() > LIMIT {
            return Err(format!("{}: not up after {} s", file.display(), LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn row(series: &Series) -> String {
    let Series { name, points, end } = series;
    let points = match points.as_deref() {
        Ok(points) => points,
        Err(why) => return format!("| {name} | not measured: {} |\n", cell(why)),
    };
    let Some(last) = points.last() else { return String::new() };
    let earlier = points.iter().find(|point| point.guests + LAST >= last.guests).unwrap_or(last);
    let between = |of: fn(&Point) -> f64| {
        #[expect(clippy::cast_precision_loss, reason = "some hundred guests")]
        let guests = (last.guests - earlier.guests).max(1) as f64;
        (of(last) - of(earlier)) / guests
    };
    let end = end.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    format!(
        "| {name} | {}{end} | {:.2} | {:.0} | {:.1} | {:.0} | {:.2} |\n",
        last.guests,
        between(|point| point.seconds),
        mib(last.memory.used),
        between(|point| mib(point.memory.used)),
        last.disk / MIB,
        between(|point| point.disk / MIB)
    )
}

fn plot(
    stage: &Stage,
    file: &str,
    what: &str,
    all: &[Series],
    of: fn(&Point) -> f64,
) -> Result<(), String> {
    let curve = |series: &Series| {
        let points = series.points.as_deref().unwrap_or_default().iter();
        #[expect(clippy::cast_precision_loss, reason = "some hundred guests")]
        let points = points.map(|point| (point.guests as f64, of(point))).collect();
        Curve { name: series.name.to_owned(), points }
    };
    let curves: Vec<Curve> = all.iter().map(curve).collect();
    let title = format!("{what} by the number of guests");
    draw(&stage.plot(file), &Axes { title: &title, x: "guests", y: what }, &curves)
}
