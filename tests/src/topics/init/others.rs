//! Guests that run sysvinit, `OpenRC` or runit.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

/// Why these run on the host only.
const IN_THE_GUEST: &str =
    "what differs from systemd guests is in the guest, not in the host's kernel";

pub const TESTS: &[Test] = &[
    test!(sysvinit_is_a_whole_system)
        .bases(&["debian13-sysvinit"])
        .slow_in(&[Lane::Vm], IN_THE_GUEST),
    test!(openrc_is_a_whole_system).bases(&["debian13-openrc"]).slow_in(&[Lane::Vm], IN_THE_GUEST),
    test!(runit_is_a_whole_system).bases(&["debian13-runit"]).slow_in(&[Lane::Vm], IN_THE_GUEST),
    test!(one_that_has_just_started_can_be_stopped)
        .bases(&["debian13-sysvinit", "debian13-openrc", "debian13-runit"])
        .slow_in(&[Lane::Vm], IN_THE_GUEST),
    test!(wait_ends_if_init_reports_no_readiness)
        .bases(&["debian13-sysvinit"])
        .slow_in(&[Lane::Vm], IN_THE_GUEST),
];

fn sysvinit_is_a_whole_system(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-sysvinit");
    wait_until_up(sandbox);
    assert!(sandbox.holm(&["logs", "g"]).ok().stdout.contains("Entering runlevel: 2"));
    lives(sandbox);
}

fn openrc_is_a_whole_system(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-openrc");
    wait_until_up(sandbox);
    let level = sandbox.holm(&["exec", "g", "--", "cat", "/run/openrc/softlevel"]).ok();
    assert_eq!(level.stdout, "default");
    lives(sandbox);
}

fn runit_is_a_whole_system(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-runit");
    sandbox.wait_for("runit's stage 2", || runs(sandbox, "runsvdir").then_some(()));
    // Debian's runit runs a service that has a directory of its own only when it is enabled.
    sandbox.holm(&["exec", "g", "--", "update-service", "--add", "/etc/sv/ssh"]).ok();
    wait_until_up(sandbox);
    lives(sandbox);
}

fn launch(sandbox: &Sandbox, base: &str) {
    sandbox.holm(&["launch", "g", "--base", base]).ok();
}

fn runs(sandbox: &Sandbox, program: &str) -> bool {
    sandbox.holm(&["exec", "g", "--", "pidof", program]).status.success()
}

/// Waits until cron runs and sshd serves.
fn wait_until_up(sandbox: &Sandbox) {
    sandbox.wait_for("cron runs", || runs(sandbox, "cron").then_some(()));
    let status = sandbox.holm(&["status", "g", "--json"]).ok().json();
    let address = status["addresses"][0].as_str().expect("an address").to_owned();
    let address = SocketAddr::new(address.parse().expect("an address"), 22);
    let greeting = || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting).ok()?;
        (&greeting == b"SSH-").then_some(())
    };
    sandbox.wait_for("sshd answers", greeting);
}

/// Reboots and powers off by itself, and ends when it is asked.
fn lives(sandbox: &Sandbox) {
    let exec = |args: &[&str]| sandbox.holm(&[&["exec", "g", "--"], args].concat());
    let status = || sandbox.holm(&["status", "g"]).ok().stdout;
    exec(&["touch", "/run/lost", "/root/kept"]).ok();
    exec(&["reboot"]);
    sandbox.wait_for("the guest has rebooted", || status().contains("rebooted").then_some(()));
    wait_until_up(sandbox);
    exec(&["sh", "-c", "test -e /root/kept && test ! -e /run/lost"]).ok();

    exec(&["poweroff"]);
    sandbox.holm(&["wait", "g"]);
    let said = status();
    assert!(said.contains("stopped") && said.contains("powered off, "), "{said}");
    assert!(!said.contains("as a command had requested"), "nobody else asked\n{said}");

    // Asked by /sbin/init 0, not killed. The guest's program gets nothing of the caller's.
    sandbox.holm(&["start", "g"]).ok();
    wait_until_up(sandbox);
    let spy = "mv /sbin/init /sbin/init.real && cat >/sbin/init <<'EOF' && chmod 755 /sbin/init\n\
               #!/bin/sh\n\
               fd=/proc/$$/fd\n\
               all=\"$(readlink $fd/0) $(readlink $fd/1) $(readlink $fd/2)\"\n\
               echo $all >/root/fds\n\
               exec /sbin/init.real \"$@\"\nEOF\n";
    exec(&["sh", "-c", spy]).ok();
    stop(sandbox);
    let said = status();
    assert!(said.contains("powered off, as a command had requested"), "{said}");
    was_given_nothing(sandbox);
    sandbox.holm(&["rm", "g"]).ok();
}

/// Stops it, with a timeout that suits the lane.
fn stop(sandbox: &Sandbox) {
    let timeout = format!("{}s", 30 * sandbox.options.patience());
    sandbox.holm(&["stop", "g", "--timeout", &timeout]).ok();
}

/// What the guest's `/sbin/init 0` was given as standard streams.
fn was_given_nothing(sandbox: &Sandbox) {
    let list = std::fs::read_to_string(sandbox.root().join("guests/g/disk/upper/root/fds"));
    let list = list.expect("the program that was asked has written it");
    assert_eq!(list, "/dev/null /dev/null /dev/null\n");
}

fn one_that_has_just_started_can_be_stopped(sandbox: &mut Sandbox) {
    for base in ["debian13-sysvinit", "debian13-openrc", "debian13-runit"] {
        launch(sandbox, base);
        stop(sandbox);
        let said = sandbox.holm(&["status", "g"]).ok().stdout;
        assert!(
            said.contains("powered off, as a command had requested"),
            "{base} was killed\n{said}"
        );
        sandbox.holm(&["rm", "g"]).ok();
    }
}

fn wait_ends_if_init_reports_no_readiness(sandbox: &mut Sandbox) {
    let printed = sandbox.holm(&["launch", "g", "--base", "debian13-sysvinit", "--wait"]).ok();
    assert_eq!(printed.stdout, "g runs; its init never reports that it is ready\n");
    let printed = sandbox.holm(&["restart", "g", "--wait", "--json"]).ok().json();
    assert_eq!(printed["ready"], false, "{printed}");
    let status = sandbox.holm(&["status", "g", "--json"]).ok().json();
    assert_eq!(status["state"], "running", "and is not called ready");
    sandbox.holm(&["rm", "--force", "g"]).ok();
}
