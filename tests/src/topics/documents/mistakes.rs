//! Errors that documents show whole, and the test that CONTRIBUTING.md shows.

use super::{CONTRIBUTING, DOCUMENTS, blocks};
use crate::guest::{IDLE, launch_idle, remove};
use crate::sandbox::Sandbox;
use serde_json::Value;

fn document(name: &str) -> &'static str {
    DOCUMENTS.iter().find(|(other, _)| *other == name).expect("a document").1
}

pub fn mistakes_look_as_shown(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "web", &[]);
    let json = blocks(document("json.md"), "json");
    let shown = json.iter().find(|block| block.contains("\"error\"")).expect("an error");
    let said = sandbox.holm(&["status", "wbe", "--json"]);
    assert_eq!(said.json(), serde_json::from_str::<Value>(shown).expect("JSON"), "{said}");
    remove(sandbox, "web");

    sandbox.holm(&[&["create", "web"], &IDLE[..]].concat()).ok();
    let file = sandbox.root().join("guests/web/guest.toml");
    std::fs::write(&file, "base = \"busybox\"\n[memory]\nlimt = \"512M\"\n").expect("guest.toml");
    let plain = blocks(document("config.md"), "");
    let shown = plain.iter().find(|block| block.starts_with("error: ")).expect("an error");
    let said = sandbox.holm(&["inspect", "web"]).refused(&[]);
    let said = said.stderr.replace(&*sandbox.root().to_string_lossy(), "/var/lib/holm");
    assert_eq!(said, format!("{}\n", shown.trim_end()));
    sandbox.holm(&["rm", "web"]).ok();
}

/// What CONTRIBUTING.md shows is what this file has between the two lines, and passes.
pub fn the_example_of_contributing_is_a_test(sandbox: &mut Sandbox) {
    let shown = blocks(CONTRIBUTING, "rust").pop().expect("an example");
    let (_, function) = shown.split_once("\n\n").expect("a table, then a function");
    assert!(shown.starts_with("pub const TESTS: &[Test] = &[test!(says_hello)"), "{shown}");
    assert!(include_str!("mistakes.rs").contains(function), "{function}");
    says_hello(sandbox);
}

fn says_hello(sandbox: &mut Sandbox) {
    let run = sandbox.holm(&["run", "--base", "busybox", "--", "echo", "hello"]).ok();
    assert_eq!(run.stdout, "hello\n", "{run}");
}
