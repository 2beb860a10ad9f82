//! The namespaces of a guest, looked at from inside.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::guest::{pid, status};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};
use crate::topics::accidents::looks::with_fault;

pub const TESTS: &[Test] = &[
    test!(clocks_are_fixed_in_an_ephemeral_guest).bases(&["busybox"]),
    test!(clocks_are_fixed_in_a_guest_that_stays).bases(&["busybox"]),
    test!(clocks_are_fixed_before_init_runs),
    test!(init_has_the_clocks_of_its_children).bases(&["busybox"]),
    test!(sysctls_of_its_network_leave_no_names_in_the_hosts_proc).bases(&["busybox"]),
];

fn clocks_are_fixed_in_an_ephemeral_guest(sandbox: &mut Sandbox) {
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

/// Init tries it before it has cloned anything.
fn clocks_are_fixed_before_init_runs(sandbox: &mut Sandbox) {
    let script = "#!/bin/sh
echo 'monotonic 1 0' >/proc/self/timens_offsets && echo changed || echo refused
exec sleep 100000
";
    let source = system(sandbox, |dir| fake_systemd(dir, script));
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    sandbox.holm(&["launch", "box", "--base", "odd", "--init", "system"]).ok();
    let logs = sandbox.wait_for("init has tried it", || {
        let logs = sandbox.holm(&["logs", "box"]).ok();
        (logs.stdout.contains("refused") || logs.stdout.contains("changed")).then_some(logs)
    });
    assert!(logs.stdout.contains("refused"), "{logs}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// An exec would take init into the time namespace of its children. An init that runs without exec
/// has to enter it itself.
fn init_has_the_clocks_of_its_children(sandbox: &mut Sandbox) {
    let script = "echo up; exec sleep 100000";
    let mut command = sandbox.command();
    command.args(["run", "--name", "box", "--base", "busybox", "--net", "none"]);
    let mut run = command
        .args(["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("holm starts");
    let mut line = String::new();
    let output = run.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("its output");
    assert_eq!(line, "up\n");
    let init = pid(&status(sandbox, "box"), "init_pid");
    let namespace = |name: &str| {
        std::fs::read_link(format!("/proc/{init}/ns/{name}")).expect("a namespace of init")
    };
    assert_eq!(namespace("time"), namespace("time_for_children"));
    sandbox.holm(&["kill", "box"]).ok();
    run.wait().expect("our child");
}

/// One name for each guest, all in one chain of the directory cache: looking below /proc/sys/net
/// took everybody longer with each guest.
fn sysctls_of_its_network_leave_no_names_in_the_hosts_proc(sandbox: &mut Sandbox) {
    let files = ["ipv4/ping_group_range", "ipv6/conf/eth0/accept_dad", "ipv6/conf/eth0/accept_ra"];
    let files = files.map(|name| format!("/proc/sys/net/{name}"));
    let run = ["run", "--base", "busybox", "--"];
    let read = [&run[..], &["cat"], &files.each_ref().map(String::as_str)].concat();
    assert_eq!(sandbox.holm(&read).ok().stdout, "0\t65535\n0\n0\n");
    let start = [&run[..], &["true"]].concat();
    let opened =
        |file: &str| with_fault(sandbox, "open,openat:error=EIO", Some(Path::new(file)), &start).1;
    for file in &files {
        assert!(!opened(file), "{file}");
    }
    // One of the host's, which shows that this would be seen.
    assert!(opened("/proc/sys/net/ipv4/ip_forward"));
}
