//! `holm doctor`.

use std::fs;

use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(guests_can_run_here),
    test!(each_feature_can_be_made_to_appear_missing),
    test!(a_missing_feature_has_a_cost_and_a_remedy),
    test!(looks_at_the_features_that_are_named),
    test!(a_root_on_tmpfs_is_unsupported),
];

pub fn features(json: &Value) -> Vec<Value> {
    json["features"].as_array().expect("a list of features").clone()
}

pub fn state<'a>(features: &'a [Value], name: &str) -> &'a str {
    let feature = features
        .iter()
        .find(|feature| feature["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"));
    feature["state"].as_str().expect("a state")
}

/// This machine can run guests, and doctor leaves nothing in the root.
fn guests_can_run_here(sandbox: &mut Sandbox) {
    let outcome = sandbox.holm(&["doctor", "--json"]).ok();
    let json = outcome.json();
    assert_eq!(json["ok"], true, "{outcome}");
    for feature in features(&json) {
        assert!(feature["needed"] == false || feature["state"] != "missing", "{feature}");
    }
    let left: Vec<_> = fs::read_dir(sandbox.root())
        .expect("the root")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    // Which the sandbox has made.
    assert_eq!(left, ["bases"]);
}

fn each_feature_can_be_made_to_appear_missing(sandbox: &mut Sandbox) {
    let all = features(&sandbox.holm(&["doctor", "--json"]).ok().json());
    let names: Vec<&str> = all.iter().filter_map(|feature| feature["name"].as_str()).collect();
    assert!(names.len() > 20, "{names:?}");
    let mut command = sandbox.command_with_fault("HOLM_PROBE_NO", &names.join(","));
    let outcome = sandbox.run(command.args(["doctor", "--json"]));
    assert_eq!(outcome.code(), 1, "a host that cannot run guests has status 1\n{outcome}");
    let json = outcome.json();
    assert_eq!(json["ok"], false);
    for feature in features(&json) {
        let expected = if feature["needed"] == true {
            "missing"
        } else {
            feature["state"].as_str().unwrap_or_default()
        };
        assert_eq!(feature["state"], expected, "{feature}");
        assert_ne!(feature["state"], "ok", "{feature}");
        assert!(
            feature["detail"].as_str().is_some_and(|text| text.contains("HOLM_PROBE_NO")),
            "{feature}"
        );
    }
}

fn a_missing_feature_has_a_cost_and_a_remedy(sandbox: &mut Sandbox) {
    let outcome = sandbox.run(sandbox.command_with_fault("HOLM_PROBE_NO", "overlay").arg("doctor"));
    assert_eq!(outcome.code(), 1, "{outcome}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("missing ") && line.contains(" overlay "))
        .unwrap_or_else(|| panic!("{outcome}"));
    assert!(lines[at + 1].contains("cost:") && lines[at + 2].contains("remedy:"), "{outcome}");
    assert!(outcome.stdout.contains("No guest can run here without: overlay\n"), "{outcome}");
}

fn looks_at_the_features_that_are_named(sandbox: &mut Sandbox) {
    let outcome = sandbox.holm(&["doctor", "kernel", "erofs", "--json"]).ok();
    assert_eq!(features(&outcome.json()).len(), 2, "{outcome}");
    let outcome = sandbox.holm(&["doctor", "erof"]);
    assert_eq!(outcome.code(), 2, "{outcome}");
    assert!(outcome.stderr.contains("no feature \"erof\""), "{outcome}");
}

fn a_root_on_tmpfs_is_unsupported(sandbox: &mut Sandbox) {
    let outcome =
        sandbox.run(sandbox.command().env("HOLM_ROOT", "/dev/shm").args(["doctor", "--json"]));
    assert_eq!(outcome.code(), 1, "{outcome}");
    assert_eq!(state(&features(&outcome.json()), "filesystem"), "missing", "{outcome}");
}
