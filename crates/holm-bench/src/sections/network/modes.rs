//! What a start costs with each kind of network, and what programs of the host and of private
//! guests pay while native guests run.

use super::wire::Wire;
use super::{
    HOST, LOADS, NATIVE_GUEST, ON_THE_SAME_CPU, PRIVATE_GUEST, WARM_UP, beside, client, figures,
    holm, holm_argv,
};
use crate::rounds::{self, Case, Row, table, take_turns};
use crate::stage::Stage;

/// Where the client runs, in which guest that is, and which guests run.
type Place = (&'static str, Option<&'static str>, &'static [&'static str]);
const PLACES: [Place; 5] = [
    (HOST, None, &[]),
    ("host, again", None, &[]),
    ("host, with a native guest", None, &[NATIVE_GUEST]),
    ("private", Some(PRIVATE_GUEST), &[PRIVATE_GUEST]),
    ("private, with a native guest", Some(PRIVATE_GUEST), &[PRIVATE_GUEST, NATIVE_GUEST]),
];

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
    wire.add_bridge()?;
    let create = |name| super::create(stage, &wire, &directory, name);
    let measured = create(NATIVE_GUEST)
        .and_then(|()| create(PRIVATE_GUEST))
        // As on a host with guests: the first native one loads the programs, the first one of a
        // base mounts its image.
        .and_then(|()| beside(stage, &wire, &[NATIVE_GUEST], || Ok(starts(stage, &wire, n))))
        .map(|text| text + BESIDE + &loads(stage, &wire, &directory, n));
    for name in [NATIVE_GUEST, PRIVATE_GUEST] {
        let _ = holm(stage, &wire, &["rm", "--force", name]);
    }
    measured
}

fn starts(stage: &Stage, wire: &Wire, n: usize) -> String {
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
    format!("{STARTS}{}", table(&outcomes, MODES[0].0))
}

/// The same loads by a program of the host and by one in a private guest, with and without a native
/// one.
fn loads(stage: &Stage, wire: &Wire, directory: &str, n: usize) -> String {
    let mut text = String::new();
    // By TCP one byte at a time, connections, and small datagrams.
    for &(kind, count, title) in &LOADS[1..4] {
        eprintln!("holm-bench: {title}");
        let rows = PLACES.iter().map(|(name, ..)| Row::new(name)).collect();
        let timed = take_turns(rows, n, WARM_UP, |row| {
            let (_, guest, running) = PLACES[row];
            let client = client(stage, directory, guest, (kind, count), ON_THE_SAME_CPU);
            let argv = wire.host.argv(&client);
            let output = beside(stage, wire, running, || Case::new(kind, argv).output());
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
## Others while native guests run

One client as in [network.md](network.md), on the server's CPU: on the host and in a private guest,
when no native guest runs, and beside one that sleeps. The programs of native guests are attached to
the cgroup of all guests, and one to the host's interfaces. The host tracks connections, because of
a bridge with masquerading. `host, again` is the same as `host`: how far two equal rows are apart.\n";
