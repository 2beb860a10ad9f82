//! What the documents show is done as they show it.

mod help;

use std::path::Path;
use std::process::Command;

use crate::command::{self, Outcome};
use crate::guest::status;
use crate::host::free_port;
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use help::every_example_of_the_help_runs;

const BOOTS: &str = "it boots a Debian several times";

pub const TESTS: &[Test] = &[
    test!(every_settings_example_works).bases(&["busybox", "debian13"]),
    test!(the_tour_prints_what_the_readme_shows)
        .bases(&["busybox", "debian13"])
        .not_in(Lane::Vm, BOOTS),
    test!(every_command_line_runs).bases(&["busybox", "debian13"]).not_in(Lane::Vm, BOOTS),
    test!(every_example_of_the_help_runs).bases(&["busybox", "debian13"]).not_in(Lane::Vm, BOOTS),
];

const README: &str = include_str!("../../../../README.md");

const DOCUMENTS: [(&str, &str); 8] = [
    ("getting-started.md", include_str!("../../../../docs/getting-started.md")),
    ("guests.md", include_str!("../../../../docs/guests.md")),
    ("bases.md", include_str!("../../../../docs/bases.md")),
    ("config.md", include_str!("../../../../docs/config.md")),
    ("network.md", include_str!("../../../../docs/network.md")),
    ("limits.md", include_str!("../../../../docs/limits.md")),
    ("json.md", include_str!("../../../../docs/json.md")),
    ("troubleshooting.md", include_str!("../../../../docs/troubleshooting.md")),
];

/// How lines begin that are not run, and why.
const NOT_RUN: [(&str, &str); 19] = [
    ("git clone", "fetches the sources"),
    ("make ", "builds and installs"),
    ("holm base import debian13", "takes minutes and the network; tests of bases do it"),
    ("holm base import sysv", "takes minutes and the network; tests of bases do it"),
    ("holm base import openrc", "takes minutes and the network; tests of bases do it"),
    ("holm base import runit", "takes minutes and the network; tests of bases do it"),
    ("holm base import busybox", "the base is there already"),
    ("curl ", "the shared base has no nginx"),
    ("ssh ", "needs a key and a terminal"),
    ("holm exec web -- systemctl status nginx", "the shared base has no nginx"),
    ("holm logs -n 20 -f", "goes on until the guest ends"),
    ("systemctl enable", "changes the host"),
    ("iptables ", "changes the host"),
    ("for base in", "removes the bases"),
    ("holm status $NAMES", "needs jq"),
    ("error: ", "is what an error looks like"),
    ("  |", "is what an error looks like"),
    ("3 |", "is what an error looks like"),
    ("holm set web devices+=/dev/fuse", "not every host has it"),
];

/// The blocks of a document that are marked as `kind`.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(kind)?.strip_prefix('\n')).collect()
}

fn every_settings_example_works(sandbox: &mut Sandbox) {
    let mut found = 0;
    for (document, text) in DOCUMENTS {
        for example in blocks(text, "toml").iter().filter(|text| text.starts_with("base = ")) {
            found += 1;
            sandbox.holm(&["create", "example", "--base", "busybox"]).ok();
            let file = sandbox.root().join("guests/example/guest.toml");
            std::fs::write(file, example).expect("guest.toml");
            sandbox.holm(&["inspect", "example"]).ok();
            // Ports and addresses of the host are the reader's.
            if !example.contains("publish") {
                starts(sandbox, document, example);
            }
            sandbox.holm(&["rm", "--force", "example"]).ok();
        }
    }
    assert!(found >= 3, "the documents have examples");
}

/// The guest starts, and each of its services runs.
fn starts(sandbox: &Sandbox, document: &str, example: &str) {
    sandbox.holm(&["start", "--wait", "example"]).ok();
    let services = example.matches(".command = ").count();
    let all = format!("services: {services} running, 0 to be restarted, 0 ended");
    sandbox.wait_for(&format!("all services of {document} to run"), || {
        (status(sandbox, "example")["health"]["services"] == *all).then_some(())
    });
    sandbox.holm(&["exec", "example", "true"]).ok();
    let now = status(sandbox, "example")["health"]["services"].clone();
    assert_eq!(now, *all, "{document}: they go on running");
}

/// Runs a line as a reader would: in a shell, in a home of its own.
fn run(sandbox: &Sandbox, home: &Path, line: &str) -> Outcome {
    let mut bash = Command::new("bash");
    let script = format!("holm() {{ \"$HOLM\" \"$@\"; }}\n{line}");
    bash.args(["-c", &script]).current_dir(home).env("HOME", home).env("EDITOR", "true");
    bash.env("HOLM", std::path::absolute(&sandbox.options.holm).expect("a path"));
    bash.env("HOLM_ROOT", sandbox.root());
    command::run(&mut bash, b"", sandbox.limit())
}

/// A home with what the documents speak of.
fn home(sandbox: &Sandbox) -> std::path::PathBuf {
    let home = sandbox.root().join("tmp/home");
    std::fs::create_dir_all(home.join(".ssh")).expect("a directory");
    std::fs::create_dir_all(home.join("site")).expect("a directory");
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF2qdzx0HrkQe4r0dGY9s2VkNlI0aSSBS5zJzXH7SJ6z me\n";
    std::fs::write(home.join(".ssh/id_ed25519.pub"), key).expect("a key");
    home
}

fn every_command_line_runs(sandbox: &mut Sandbox) {
    let home = home(sandbox);
    for (document, text) in DOCUMENTS {
        let lines: Vec<&str> = blocks(text, "").iter().flat_map(|block| block.lines()).collect();
        let wanted = |line: &&str| {
            !line.trim().is_empty() && !NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin))
        };
        let lines: Vec<&str> = lines.into_iter().filter(wanted).collect();
        // A document that makes the guest that it speaks of begins with that.
        if !lines.is_empty() && !lines.iter().any(|line| line.starts_with("holm launch web")) {
            sandbox.holm(&["launch", "--wait", "web", "--base", "debian13"]).ok();
        }
        for line in lines {
            // Behind three spaces is what a command does.
            let command = line.split("   ").next().unwrap_or(line).replace("NAME", "web");
            let port = free_port().to_string();
            let command = command.replace("8080:", &format!("{port}:"));
            let outcome = run(sandbox, &home, &command);
            assert!(outcome.status.success(), "{document}: {line}\n{outcome}");
        }
        sandbox.holm(&["rm", "--force", "--all"]).ok();
    }
}

/// What differs from machine to machine: numbers, addresses, and how wide a table is.
fn without_numbers(text: &str) -> Vec<String> {
    let number = |word: &str| {
        let mut plain = String::new();
        for c in word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }) {
            if c != '0' || !plain.ends_with('0') {
                plain.push(c);
            }
        }
        if plain.starts_with("fd0:") { "address".to_owned() } else { plain.replace("0.0", "0") }
    };
    let line = |line: &str| line.split_whitespace().map(number).collect::<Vec<_>>().join(" ");
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

fn the_tour_prints_what_the_readme_shows(sandbox: &mut Sandbox) {
    let home = home(sandbox);
    let tour = blocks(README, "console").concat();
    let steps: Vec<&str> = tour.split("# ").filter(|step| !step.is_empty()).collect();
    assert!(steps.len() >= 9, "the tour has its steps");
    for step in steps {
        let (line, shown) = step.split_once('\n').unwrap_or((step, ""));
        if NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin)) {
            continue;
        }
        let command = line.replace("8080:", &format!("{}:", free_port()));
        let outcome = run(sandbox, &home, &command);
        assert!(outcome.stderr.is_empty(), "{line}\n{outcome}");
        assert_eq!(without_numbers(&outcome.stdout), without_numbers(shown), "{line}\n{outcome}");
    }
}
