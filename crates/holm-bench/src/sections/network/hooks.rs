//! What each BPF program of native guests takes, by the kernel's own count.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use holm_bpf::{Guest, Map, PROGRAMS};
use holm_sys::bpf;

use super::wire::{NATIVE, OUTSIDE, Wire};
use crate::build::SLEEP;
use crate::stage::Stage;
use crate::stats::Summary;

/// What the guest does in each round: kind, count.
const LOADS: [(&str, &str); 4] =
    [("echo", "5000"), ("connect", "2000"), ("udp-64", "20000"), ("stream", "2000")];
/// Guests that are in the maps and do not run.
const OTHERS: u64 = 1000;
/// Far from the ids of cgroups that exist.
const FIRST_CGROUP: u64 = 1 << 60;
const NAME: &str = "bench-hooks";

/// Nanoseconds of each run, by program; with how many runs in a round.
type Times = BTreeMap<&'static str, (Vec<f64>, u64)>;

struct Hooks<'a> {
    stage: &'a Stage,
    wire: &'a Wire,
    directory: &'a str,
}

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let (wire, directory) = super::prepare(stage)?;
    let hooks = Hooks { stage, wire: &wire, directory: &directory };
    let measured = hooks.measure(n);
    let _ = super::holm(stage, &wire, &["rm", "--force", NAME]);
    measured
}

impl Hooks<'_> {
    fn measure(&self, n: usize) -> Result<String, String> {
        let mount = format!("{}:/bench:ro", self.directory);
        let address = format!("net.address={NATIVE}");
        let create =
            ["create", NAME, "--base", "minimal", "-v", &mount, "--net", "native", "--set"];
        super::holm(
            self.stage,
            self.wire,
            &[&create[..], &[&address, "--", "/bin/sleep", SLEEP]].concat(),
        )?;
        super::holm(self.stage, self.wire, &["start", NAME])?;
        let maps = PathBuf::from(format!("/run/holm/{}/bpf", super::instance(self.stage)?));
        let _measured = bpf::measure_run_time().map_err(|e| format!("bpf statistics: {e}"))?;
        let (mut one, mut many) = (Times::new(), Times::new());
        // The first round is not counted.
        for round in 0..=n {
            for with_others in if round % 2 == 0 { [false, true] } else { [true, false] } {
                if with_others {
                    others(&maps, true)?;
                }
                let before = counts(&maps)?;
                let loaded = self.load();
                let after = counts(&maps)?;
                if with_others {
                    others(&maps, false)?;
                }
                loaded?;
                if round > 0 {
                    add(if with_others { &mut many } else { &mut one }, &before, &after);
                }
            }
        }
        Ok(table(&one, &many))
    }

    fn load(&self) -> Result<(), String> {
        for (kind, count) in LOADS {
            let client = ["exec", NAME, "--", "/bench/netload", "client", OUTSIDE, kind, count];
            super::holm(self.stage, self.wire, &client)?;
        }
        Ok(())
    }
}

/// Puts guests into the maps that are not there, or takes them out.
fn others(maps: &Path, put: bool) -> Result<(), String> {
    let fail = |e| format!("{}: {e}", maps.display());
    let guests = bpf::Map::open(&maps.join(Map::Guests.name())).map_err(fail)?;
    let owners = bpf::Map::open(&maps.join(Map::Owners.name())).map_err(fail)?;
    for number in 0..OTHERS {
        let low = u16::try_from(number).unwrap_or_default();
        let [high, last] = low.to_be_bytes();
        let guest = Guest {
            netns: 0,
            root: 0,
            loopback: Ipv4Addr::new(127, 200 + high, last, 0),
            loopback6: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, low),
            addresses: vec![
                IpAddr::V4(Ipv4Addr::new(198, 18, high, last)),
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, low)),
            ],
            shared: None,
            capped: false,
        };
        let id = (FIRST_CGROUP + number).to_ne_bytes();
        if put {
            guests.update(&id, &guest.to_bytes()).map_err(fail)?;
        } else {
            guests.delete(&id).map_err(fail)?;
        }
        for key in guest.owned() {
            if put {
                owners.update(&key, &id).map_err(fail)?;
            } else {
                owners.delete(&key).map_err(fail)?;
            }
        }
    }
    Ok(())
}

/// How often each program has run, and for how many nanoseconds.
fn counts(maps: &Path) -> Result<BTreeMap<&'static str, (u64, u64)>, String> {
    let entries = fs::read_dir(maps).map_err(|e| format!("{}: {e}", maps.display()))?;
    let mut all = BTreeMap::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The one that steers is attached to interfaces one by one; what has its name is no link.
        let program = PROGRAMS.iter().map(|program| program.name).find(|program| {
            name == *program && name != "steer" || name.starts_with(&format!("{program}-"))
        });
        let Some(program) = program else { continue };
        let link = bpf::open_pinned(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (runs, took) =
            bpf::run_time(link.as_fd()).map_err(|e| format!("{}: {e}", path.display()))?;
        let sum: &mut (u64, u64) = all.entry(program).or_default();
        *sum = (sum.0.max(runs), sum.1.max(took));
    }
    Ok(all)
}

#[allow(clippy::cast_precision_loss, reason = "a few million runs")]
fn add(
    times: &mut Times,
    before: &BTreeMap<&'static str, (u64, u64)>,
    after: &BTreeMap<&'static str, (u64, u64)>,
) {
    for (program, (runs, took)) in after {
        let (runs_before, took_before) = before.get(program).copied().unwrap_or_default();
        let runs = runs - runs_before;
        if runs > 0 {
            let (samples, last) = times.entry(program).or_default();
            samples.push((took - took_before) as f64 / runs as f64);
            *last = runs;
        }
    }
}

fn table(one: &Times, many: &Times) -> String {
    let mut text = format!(
        "{INTRODUCTION}\n| program | runs in a round | ns, 1 guest | ns, {} guests | ratio |\n\
         |---|---|---|---|---|\n",
        OTHERS + 1
    );
    let short = |samples: &[f64]| {
        let Summary { median, p10, p90 } = Summary::of(samples);
        format!("{median:.0} ({p10:.0} to {p90:.0})")
    };
    for (program, (samples, runs)) in one {
        let Some((others, _)) = many.get(program) else { continue };
        let ratio = Summary::of_ratios(others, samples).with_spread();
        let (one, many) = (short(samples), short(others));
        text += &format!("| `{program}` | {runs} | {one} | {many} | {ratio} |\n");
    }
    text
}

const INTRODUCTION: &str = "\
A native guest connects, sends and receives by TCP and UDP. The kernel counts how often each program
runs and for how long, its own measuring included (some 20 ns); times are of one run, over all runs
of a round. With 1001 guests there are as many in the maps, of which one runs.\n";
