//! Runs every target over its corpus, and over a bounded number of mutations of it.
//!
//! The mutations are the same each time. `HOLM_FUZZ_SEED` chooses others, `HOLM_FUZZ_RUNS` their
//! number. A failing input is written below `target/fuzz`, and the failure names the file.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use holm_fuzz::{TARGETS, Target};

mod mutate;
mod watchdog;

use mutate::Mutator;
use watchdog::Watchdog;

const SEED: u64 = 1;
const RUNS: u64 = 50_000;
/// No input grows beyond this.
const LONGEST: usize = 16 << 10;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
    })
}

/// The samples of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = root().join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut samples: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("a directory entry");
            let bytes = fs::read(entry.path()).expect("a sample");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    samples.sort();
    samples
}

/// Writes a failing input to a file, and describes it.
fn failing(target: &str, what: &str, input: &[u8]) -> String {
    let file = root().join(format!("target/fuzz/{target}.failing"));
    let written =
        fs::create_dir_all(root().join("target/fuzz")).and_then(|()| fs::write(&file, input));
    let kept = match written {
        Ok(()) => format!("kept as {}", file.display()),
        Err(error) => format!("cannot write {}: {error}", file.display()),
    };
    let head = &input[..input.len().min(256)];
    format!("{target} fails on {what}; {} bytes, {kept}, beginning with {head:02x?}", input.len())
}

/// Runs a target on one input, and returns whether it accepts it.
fn run(target: &Target, what: &str, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input)))
        .unwrap_or_else(|_| panic!("{}", failing(target.name, what, input)))
}

/// The corpus, some of which the target accepts, then its mutations.
fn bounded(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let seed = from_environment("HOLM_FUZZ_SEED", SEED);
    let samples = corpus(name);
    let accepted = samples
        .iter()
        .filter(|(file, bytes)| run(target, &format!("fuzz/corpus/{name}/{file}"), bytes));
    assert!(accepted.count() > 0, "{name} accepts nothing of its corpus");
    let bodies: Vec<&[u8]> = samples.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    let mut mutator = Mutator::new(seed);
    let watchdog = Watchdog::start(target.name);
    for number in 0..from_environment("HOLM_FUZZ_RUNS", RUNS) {
        let mut input = mutator.mutate(&bodies);
        input.truncate(LONGEST);
        watchdog.begins(&input);
        run(target, &format!("mutation {number} of seed {seed}"), &input);
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                bounded(stringify!($name));
            }
        )*
    };
}

targets!(
    cgroup_files,
    escape_filter,
    flows,
    guest_changes,
    guest_toml,
    managed_block,
    mountinfo,
    netlink,
    nft_chains,
    pax,
    proc_files,
    proc_net,
    responder,
    tar,
);

/// A target is run here and by cargo-fuzz, and has a corpus.
#[test]
fn every_target_is_everywhere() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, NAMES);
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("fuzz/Cargo.toml");
    for name in &names {
        let binary = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&binary), "{name} is not in fuzz/Cargo.toml");
        let text = fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{name}.rs")));
        let text = text.unwrap_or_else(|error| panic!("fuzz/fuzz_targets/{name}.rs: {error}"));
        assert!(text.contains(&format!("holm_fuzz::{name}(data)")), "{text}");
    }
    let mut corpora: Vec<_> = fs::read_dir(root().join("fuzz/corpus"))
        .expect("fuzz/corpus")
        .map(|entry| entry.expect("a directory entry").file_name().to_string_lossy().into_owned())
        .collect();
    corpora.sort();
    assert_eq!(corpora, names);
}
