//! The namespaces of a guest, looked at from inside.

use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(clocks_are_fixed_in_a_guest_for_one_command).bases(&["busybox"]),
    test!(clocks_are_fixed_in_a_guest_that_stays).bases(&["busybox"]),
];

fn clocks_are_fixed_in_a_guest_for_one_command(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let command = ["run", "--base", "busybox", "--net", "none", "-v", &mount];
    let probe = ["--", "/probe/holm-probe", "offsets"];
    let outcome = sandbox.holm(&[&command[..], &probe].concat()).ok();
    assert!(outcome.stdout.contains("/proc/1/timens_offsets"), "{outcome}");
}

/// What `exec` brings into a guest has the guest's clocks.
fn clocks_are_fixed_in_a_guest_that_stays(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    sandbox
        .holm(&["launch", "box", "--base", "busybox", "-v", &mount, "--", "/bin/sleep", "1000"])
        .ok();
    sandbox.holm(&["exec", "box", "/probe/holm-probe", "offsets"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
