//! What the kernel keeps for a guest, by slab cache (`slabinfo(5)`).

use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::Duration;

use crate::build::Holm;
use crate::meminfo::drop_caches;
use crate::sections::guests::Sleepers;
use crate::stage::Stage;

/// Enough guests that what the rest of the host does meanwhile counts little.
const MINIMAL: usize = 50;
const SYSTEMD: usize = 8;
/// How many caches a table names.
const CACHES: usize = 12;
/// A booting systemd does most in its first seconds; what the kernel frees, it frees late.
const SETTLE: Duration = Duration::from_secs(2);
const BOOT: Duration = Duration::from_secs(15);

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    stage.debian()?;
    let mut text = String::from(
        "Active objects of the slab caches, KiB for each guest beyond the first two; `percpu` and \
         `stacks` are\nthose of /proc/meminfo. Each kind of guest after a `drop_caches`.\n\n",
    );
    let minimal = ["--base", "minimal"];
    for (title, settings, count, settle) in [
        ("minimal, no network", ["--set", "net.mode=none"], MINIMAL, SETTLE),
        ("minimal, private network", ["--set", "net.mode=private"], MINIMAL, SETTLE),
    ] {
        let settings = [&minimal[..], &settings].concat();
        for holm in &stage.holms {
            text += &table(holm, title, &settings, count, settle)?;
        }
    }
    for holm in &stage.holms {
        text += &table(holm, "systemd, private network", &["--base", "debian"], SYSTEMD, BOOT)?;
    }
    Ok(text)
}

fn table(
    holm: &Holm,
    title: &str,
    settings: &[&str],
    count: usize,
    settle: Duration,
) -> Result<String, String> {
    let mut guests = Sleepers::new(holm);
    let first = guests.create_more(2, settings)?;
    guests.start(&first)?;
    let others = guests.create_more(count, settings)?;
    std::thread::sleep(settle);
    let before = Kernel::read()?;
    guests.start(&others)?;
    std::thread::sleep(settle);
    let after = Kernel::read()?;
    #[expect(clippy::cast_precision_loss, reason = "a number of KiB")]
    let each = |now: u64, then: u64| (now as f64 - then as f64) / 1024.0 / count as f64;
    let mut caches: Vec<(&str, f64)> = after
        .caches
        .iter()
        .map(|(name, bytes)| (&**name, each(*bytes, before.caches.get(name).copied().unwrap_or(0))))
        .collect();
    caches.sort_by(|one, other| other.1.total_cmp(&one.1));
    let all: f64 = caches.iter().map(|(_, kib)| kib).sum();
    let mut cells: Vec<String> = caches[..CACHES.min(caches.len())]
        .iter()
        .map(|(name, kib)| format!("{name} {kib:.0}"))
        .collect();
    cells.push(format!("percpu {:.0}", each(after.percpu, before.percpu)));
    cells.push(format!("stacks {:.0}", each(after.stacks, before.stacks)));
    let build = holm.build.suffix();
    Ok(format!("- **{title}{build}: {all:.0}**: {}\n", cells.join(", ")))
}

/// What the kernel uses now, in bytes.
struct Kernel {
    caches: HashMap<String, u64>,
    percpu: u64,
    stacks: u64,
}

impl Kernel {
    fn read() -> Result<Self, String> {
        let fail = |path: &str, e: std::io::Error| format!("{path}: {e}");
        // What was used since the last pass survives one.
        (0..3).try_for_each(|_| drop_caches())?;
        let text = |path: &str| read_to_string(path).map_err(|e| fail(path, e));
        let mut caches = HashMap::new();
        for line in text("/proc/slabinfo")?.lines().skip(2) {
            // name, active objects, all objects, bytes of an object
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
            if let (Some(active), Some(size)) = (number(1), number(3)) {
                caches.insert(fields[0].to_owned(), active * size);
            }
        }
        let meminfo = text("/proc/meminfo")?;
        let kib = |key: &str| -> u64 {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        Ok(Self { caches, percpu: kib("Percpu:") * 1024, stacks: kib("KernelStack:") * 1024 })
    }
}
