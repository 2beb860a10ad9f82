//! What the documents show is done as they show it.

mod firewalls;
mod guests;
mod help;
mod install;
mod lines;
mod messages;
mod mistakes;
mod reader;
mod sentences;
mod tour;

use crate::guest::status;
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use firewalls::the_rules_for_docker_let_guests_through;
use help::every_example_of_the_help_runs;
use install::{every_target_of_make_is_there, what_make_install_makes};
use lines::{every_command_line_runs, start_again_from_nothing};
use messages::every_message_of_troubleshooting_is_said;
use mistakes::{mistakes_look_as_shown, the_example_of_contributing_is_a_test};
use sentences::every_command_in_a_sentence_runs;
use tour::the_tour_prints_what_the_readme_shows;

const BOOTS: &str = "it boots a Debian several times";
const HOSTS: &str = "it needs the sources, or programs that the machine lacks";
const ALL: &[&str] = &["busybox", "debian13-nginx"];

pub const TESTS: &[Test] = &[
    test!(every_settings_example_works).bases(&["busybox", "debian13"]),
    test!(mistakes_look_as_shown).bases(&["busybox"]),
    test!(the_example_of_contributing_is_a_test).bases(&["busybox"]),
    test!(every_message_of_troubleshooting_is_said).bases(&["busybox"]).not_in(Lane::Vm, HOSTS),
    test!(the_tour_prints_what_the_readme_shows).not_in(Lane::Vm, "it imports a Debian"),
    test!(every_command_line_runs).bases(ALL).not_in(Lane::Vm, BOOTS),
    test!(start_again_from_nothing).not_in(Lane::Vm, HOSTS),
    test!(every_command_in_a_sentence_runs).bases(ALL).not_in(Lane::Vm, BOOTS),
    test!(every_example_of_the_help_runs).bases(ALL).not_in(Lane::Vm, BOOTS),
    test!(what_make_install_makes).bases(&["debian13"]).not_in(Lane::Vm, HOSTS),
    test!(every_target_of_make_is_there).not_in(Lane::Vm, HOSTS),
    test!(the_rules_for_docker_let_guests_through).not_in(Lane::Vm, HOSTS),
];

const README: &str = include_str!("../../../../README.md");
const CONTRIBUTING: &str = include_str!("../../../../CONTRIBUTING.md");

const DOCUMENTS: [(&str, &str); 9] = [
    ("getting-started.md", include_str!("../../../../docs/getting-started.md")),
    ("guests.md", include_str!("../../../../docs/guests.md")),
    ("disks.md", include_str!("../../../../docs/disks.md")),
    ("bases.md", include_str!("../../../../docs/bases.md")),
    ("config.md", include_str!("../../../../docs/config.md")),
    ("network.md", include_str!("../../../../docs/network.md")),
    ("limits.md", include_str!("../../../../docs/limits.md")),
    ("json.md", include_str!("../../../../docs/json.md")),
    ("troubleshooting.md", include_str!("../../../../docs/troubleshooting.md")),
];

/// Documents without command lines of their own, but with commands in sentences.
const OTHER_DOCUMENTS: [(&str, &str); 8] = [
    ("doctor.md", include_str!("../../../../docs/doctor.md")),
    ("security.md", include_str!("../../../../docs/security.md")),
    ("mounts.md", include_str!("../../../../docs/mounts.md")),
    ("architecture.md", include_str!("../../../../docs/architecture.md")),
    ("glossary.md", include_str!("../../../../docs/glossary.md")),
    ("CONTRIBUTING.md", CONTRIBUTING),
    ("PROMISES.md", include_str!("../../../../PROMISES.md")),
    ("SECURITY.md", include_str!("../../../../SECURITY.md")),
];

/// The blocks of a document that are marked as `kind`.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(kind)?.strip_prefix('\n')).collect()
}

/// What stands between backticks in sentences and tables.
fn inline(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split("\n```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2))
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
