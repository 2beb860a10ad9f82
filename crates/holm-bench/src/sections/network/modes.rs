//! What a start costs with each kind of network, and what the host's own programs pay while native
//! guests run.

use super::wire::{NATIVE, OUTSIDE, Wire};
use super::{HOST, LOADS, WARM_UP, figures, holm, holm_argv};
use crate::build::SLEEP;
use crate::rounds::{self, Case, Row, table, take_turns};
use crate::stage::Stage;

const NAME: &str = "bench-modes";
/// What is started, and the settings of its network.
const MODES: [(&str, &str); 6] = [
    ("none", "net.mode=none"),
    ("host", "net.mode=host"),
    ("native", "net.mode=native,net.address=198.18.1.1"),
    ("private", "net.mode=private"),
    ("a bridge", "net.mode=none,net.lan=bridge:br0@198.18.0.7/24"),
    ("a macvlan", "net.mode=none,net.lan=macvlan:up0@192.0.2.7/24"),
];
pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let (wire, directory) = super::prepare(stage)?;
    wire.add_addresses(1, 1)?;
    let program = format!("{directory}/netload");
    let measured =
        starts(stage, &wire, n).map(|text| text + BESIDE + &beside(stage, &wire, &program, n));
    let _ = holm(stage, &wire, &["rm", "--force", NAME]);
    measured
}

/// Makes a native guest that runs.
fn start_native(stage: &Stage, wire: &Wire) -> Result<(), String> {
    let address = format!("net.address={NATIVE}");
    let create = ["create", NAME, "--base", "minimal", "--net", "native", "--set", &address];
    holm(stage, wire, &[&create[..], &["--", "/bin/sleep", SLEEP]].concat())?;
    holm(stage, wire, &["start", NAME]).map(drop)
}

fn starts(stage: &Stage, wire: &Wire, n: usize) -> Result<String, String> {
    // As on a host with guests: the first native one loads the programs, the first one of a base
    // mounts its image.
    start_native(stage, wire)?;
    let cases: Vec<Case> = MODES
        .iter()
        .map(|(name, settings)| {
            let settings = settings.split(',').flat_map(|setting| ["--set", setting]);
            let mut args = vec!["run", "--base", "minimal"];
            args.extend(settings);
            args.extend(["--", "/bin/true"]);
            Case::new(name, wire.host.argv(&holm_argv(stage, &args)))
        })
        .collect();
    // Short ones, of which there can be more.
    let outcomes = rounds::run(&cases, n * 5);
    holm(stage, wire, &["stop", NAME])?;
    Ok(format!("{STARTS}{}", table(&outcomes, MODES[0].0)))
}

/// The same load by a program of the host, with and without native guests.
fn beside(stage: &Stage, wire: &Wire, program: &str, n: usize) -> String {
    const WITH: &str = "with a native guest";
    let mut text = String::new();
    // By TCP one byte at a time, connections, and small datagrams.
    for (kind, count, title) in &LOADS[1..4] {
        eprintln!("holm-bench: {title}");
        let rows = [HOST, "host, again", WITH].map(Row::new).to_vec();
        let timed = take_turns(rows, n, WARM_UP, |row| {
            if row == 2 {
                holm(stage, wire, &["start", NAME])?;
            }
            let client = [program, "client", OUTSIDE, kind, &count.to_string()].map(str::to_owned);
            let output = Case::new(kind, wire.host.argv(&client)).output();
            if row == 2 {
                holm(stage, wire, &["kill", NAME])?;
            }
            figures(&output?).map(|(took, _)| took)
        });
        text += &format!("\n### {title}\n\n{}", table(&timed, HOST));
    }
    text
}

const STARTS: &str = "\
`holm run -- /bin/true` on a host on which another native guest of the same base runs, the whole
process; nsenter, which puts it into the host's network namespace, is in all rows.\n\n";

const BESIDE: &str = "
## Programs of the host while native guests run

One client on the host as in [network.md](network.md), when no native guest runs, and beside one that
sleeps: its programs are attached to its cgroup, and one to the host's interfaces.
`host, again` is the same as `host`: how far two equal rows are apart.\n";
