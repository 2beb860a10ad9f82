//! Guests that run another init of Debian's than systemd.

use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] =
    &[test!(sysvinit_is_a_whole_system).bases(&["debian13-sysvinit"]).not_in(
        Lane::Vm,
        "what differs from systemd guests is in the guest, not in the host's kernel",
    )];

/// Waits until cron and sshd run, which its runlevel starts.
fn wait_until_up(sandbox: &Sandbox) {
    sandbox.wait_for("runlevel 2 is reached", || {
        let found = sandbox.holm(&["exec", "g", "--", "pidof", "cron", "sshd"]).stdout;
        (found.split_whitespace().count() == 2).then_some(())
    });
}

fn last(sandbox: &Sandbox) -> String {
    sandbox.holm(&["status", "g"]).ok().stdout
}

fn sysvinit_is_a_whole_system(sandbox: &mut Sandbox) {
    sandbox.holm(&["launch", "g", "--base", "debian13-sysvinit"]).ok();
    wait_until_up(sandbox);
    assert!(sandbox.holm(&["logs", "g"]).ok().stdout.contains("Entering runlevel: 2"));
    sandbox.holm(&["exec", "g", "--", "touch", "/run/lost"]).ok();
    sandbox.holm(&["exec", "g", "--", "reboot"]);
    sandbox.wait_for("the guest has rebooted", || last(sandbox).contains("rebooted").then_some(()));
    wait_until_up(sandbox);
    sandbox.holm(&["exec", "g", "--", "test", "!", "-e", "/run/lost"]).ok();
    // Asked by /sbin/init 0, not killed.
    sandbox.holm(&["stop", "g"]).ok();
    let status = last(sandbox);
    assert!(status.contains("switched itself off, as a command had asked"), "{status}");
    sandbox.holm(&["rm", "g"]).ok();
}
