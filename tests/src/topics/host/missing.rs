//! Missing features of the host, and callers who are not root.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::guest::{IDLE, idle, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(not_root).bases(&["busybox"]),
    test!(a_missing_requirement_is_named).bases(&["busybox"]),
    test!(a_start_that_fails_names_what_the_host_lacks).bases(&["busybox"]),
    test!(users_of_the_host_see_no_guests),
];

fn not_root(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for args in [
            &["run", "--base", "busybox", "--", "true"][..],
            &["create", "box", "--base", "busybox"],
            &["base", "import", "two", "busybox"],
        ] {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg(&sandbox.options.holm).args(args);
            command.env("HOLM_ROOT", sandbox.root()).env("HOLM_IMPORT", &sandbox.options.import);
            sandbox.run(&mut command).refused(&["holm must be run as root"]);
        }
    });
}

/// Every feature that `holm doctor` calls needed, one after the other.
fn a_missing_requirement_is_named(sandbox: &mut Sandbox) {
    let json = sandbox.holm(&["doctor", "--json"]).ok().json();
    let all = json["features"].as_array().expect("a list of features");
    let needed: Vec<&str> = all
        .iter()
        .filter(|feature| feature["needed"] == true)
        .filter_map(|feature| feature["name"].as_str())
        .collect();
    assert!(needed.len() >= 10, "{needed:?}");
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for name in &needed {
            let without = |args: &[&str]| {
                sandbox.run(sandbox.command_with_fault("HOLM_PROBE_NO", name).args(args))
            };
            let doctor = without(&["doctor", name, "--json"]).json();
            let remedy = doctor["features"][0]["remedy"].as_str().expect("a remedy").to_owned();
            assert!(!remedy.is_empty(), "{name}");
            let message = [&format!("this host lacks {name}: "), remedy.as_str()];
            without(&["start", "box"]).refused(&message);
            without(&[&["run"][..], &IDLE].concat()).refused(&message);
        }
    });
    assert_eq!(status(sandbox, "box")["state"], "stopped");
    // A missing optional feature keeps no guest from starting.
    let mut without = sandbox.command_with_fault("HOLM_PROBE_NO", "criu,reflink");
    sandbox.run(without.args(["start", "box"])).ok();
    sandbox.holm(&["kill", "box"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
}

/// A kernel without EROFS is found out by a call that fails in the middle of a start. The error is
/// the requirement with its remedy, not the call; for programs too.
fn a_start_that_fails_names_what_the_host_lacks(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let starts = [vec!["start", "box"], [&["run"][..], &IDLE].concat()];
    changes_nothing(sandbox, |sandbox| {
        for (at, args) in starts.iter().enumerate() {
            let without = |extra: &[&str]| {
                let holm = sandbox.command();
                let mut strace = Command::new("strace");
                strace.args(["-f", "-q", "-o", "/dev/null", "-e", "trace=fsopen"]);
                strace.args(["-e", "inject=fsopen:error=ENODEV", "--"]);
                strace.arg(holm.get_program()).args(&args[..1]).args(extra).args(&args[1..]);
                strace.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
                sandbox.run(&mut strace)
            };
            without(&[]).refused(&["this host lacks erofs", "modprobe erofs"]);
            if at == 0 {
                let error = &without(&["--json"]).json()["error"];
                assert_eq!(error["code"], "requirement-missing", "{error}");
                assert_eq!(error["object"], "erofs", "{error}");
                for key in ["reason", "remedy"] {
                    assert!(error[key].as_str().is_some_and(|text| text.len() > 10), "{error}");
                }
            }
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// Neither names nor locks below /run/holm are for users of the host.
fn users_of_the_host_see_no_guests(sandbox: &mut Sandbox) {
    sandbox.holm(&["base", "import", "any", "busybox"]).ok();
    let mode = std::fs::metadata("/run/holm").expect("/run/holm").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
