//! Random changes in guests that are unified again and again, compared with the same changes on a
//! plain filesystem.
//!
//! `make property` runs many rounds (`HOLM_ROUNDS`, from `HOLM_SEED` on).

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::command;
use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] =
    &[test!(guests_stay_what_they_are), test!(a_killed_unification_changes_nothing)];

/// Two of them make the same changes, so that they have files in common.
const GUESTS: [&str; 3] = ["a", "b", "c"];

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Guests on a base with a random tree, and the same tree beside each, on the host's filesystem.
struct Trees<'a> {
    sandbox: &'a Sandbox,
    seed: u64,
}

impl<'a> Trees<'a> {
    fn new(sandbox: &'a Sandbox, seed: u64) -> Self {
        let probe = sandbox.probe_directory();
        let program = probe.join("holm-probe");
        let source = system(sandbox, |dir| {
            let tree = dir.join("t");
            std::fs::create_dir(&tree).expect("a directory");
            let mut mutate = Command::new(&program);
            mutate.args(["mutate", &seed.to_string(), "400", "--no-links"]).arg(&tree);
            sandbox.run(&mut mutate).ok();
        });
        sandbox.holm(&["base", "import", "tree", &source]).ok();
        for name in GUESTS {
            let model = sandbox.root().join(format!("model-{name}"));
            let mut copy = Command::new("cp");
            sandbox.run(copy.arg("-a").arg(format!("{source}/t")).arg(&model)).ok();
            let mounts = [
                format!("mounts+={}:/model", model.display()),
                format!("mounts+={}:/probe:ro", probe.display()),
            ];
            let settings = ["--net", "none", "--set", &mounts[0], "--set", &mounts[1]];
            let head = ["create", name, "--base", "tree"];
            sandbox.holm(&[&head, &settings[..], &["--", "sleep", "100000"]].concat()).ok();
        }
        Self { sandbox, seed }
    }

    fn all(&self, verb: &[&str]) {
        self.sandbox.holm(&[verb, &GUESTS].concat()).ok();
    }

    /// Makes changes in each guest and beside it.
    fn mutate(&self, round: u64, count: u64) {
        for (name, other) in GUESTS.iter().zip([0, 0, 1]) {
            let seed = self.seed + 1_000_000 * other + 1000 * (round + 1);
            let script = format!("/probe/holm-probe mutate {seed} {count} /t /model");
            exec(self.sandbox, name, &script).ok();
        }
    }

    fn compare(&self) {
        for name in GUESTS {
            exec(self.sandbox, name, "/probe/holm-probe compare /t /model").ok();
        }
    }

    fn unify(&self) -> u64 {
        // What has changed a moment ago may change again in the same moment, as its time says.
        thread::sleep(Duration::from_millis(150));
        let done = self.sandbox.holm(&["unify", "--all", "--min-age", "0", "--json"]).ok().json();
        let guests = done.as_array().expect("an array").clone();
        guests
            .iter()
            .map(|guest| {
                assert!(guest["error"].is_null(), "seed {}: {guest}", self.seed);
                guest["files"].as_u64().expect("a number")
            })
            .sum()
    }
}

fn guests_stay_what_they_are(sandbox: &mut Sandbox) {
    let first = number("HOLM_SEED", 1);
    for seed in first..first + number("HOLM_SEEDS", 1) {
        let trees = Trees::new(sandbox, seed);
        let mut shared = 0;
        for round in 0..number("HOLM_ROUNDS", 4) {
            trees.all(&["start"]);
            trees.compare();
            trees.mutate(round, 60);
            if round % 2 == 1 {
                // While they run: their files are switched at the next start, as far as they have
                // not changed by then.
                shared += trees.unify();
                trees.mutate(round + 500, 10);
            }
            trees.compare();
            trees.all(&["stop"]);
            if round % 2 == 0 {
                shared += trees.unify();
            }
        }
        trees.all(&["start"]);
        trees.compare();
        assert!(shared > 10, "seed {seed}: nothing to share");
        trees.all(&["rm", "--force"]);
        sandbox.holm(&["base", "rm", "tree"]).ok();
        let _ = GUESTS
            .map(|name| std::fs::remove_dir_all(sandbox.root().join(format!("model-{name}"))));
        println!("seed {seed}: {shared} files shared");
    }
}

/// Killed at any moment, the command leaves every guest as it was, and the next one does its work.
fn a_killed_unification_changes_nothing(sandbox: &mut Sandbox) {
    let trees = Trees::new(sandbox, number("HOLM_SEED", 1) + 77);
    for round in 0..number("HOLM_ROUNDS", 4) {
        trees.all(&["start"]);
        trees.mutate(round, 60);
        trees.all(&["stop"]);
        thread::sleep(Duration::from_millis(150));
        for delay in 0..12 {
            let mut child = sandbox
                .command()
                .args(["unify", "--all", "--min-age", "0"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("holm runs");
            thread::sleep(Duration::from_micros(delay * 5000 + round * 1300));
            let _ = child.kill();
            let _ = child.wait();
        }
        trees.all(&["start"]);
        trees.compare();
        trees.all(&["stop"]);
    }
    trees.unify();
    trees.all(&["start"]);
    trees.compare();
    trees.all(&["rm", "--force"]);
    for name in GUESTS {
        let left = sandbox.root().join("guests").join(name);
        assert!(!left.exists(), "{}", left.display());
    }
    // What a killed command has staged is gone.
    sandbox.holm(&["base", "ls"]).ok();
    let staged = command::run(
        Command::new("ls").arg("-A").arg(sandbox.root().join("bases")),
        b"",
        sandbox.limit(),
    );
    assert_eq!(staged.ok().stdout.trim(), "tree");
}
