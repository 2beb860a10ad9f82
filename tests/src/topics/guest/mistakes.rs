//! Mistakes of people, and what they are told.

use std::io::Read;
use std::process::{Child, ExitStatus, Stdio};

use crate::guest::{exec, idle, launch_idle, remove};
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::Topology;

pub const TESTS: &[Test] = &[
    test!(a_guest_that_is_not_there).bases(&["busybox"]),
    test!(a_time_that_was_meant_for_wait).bases(&["busybox"]),
    test!(a_command_in_a_guest_that_has_ended).bases(&["busybox"]),
    test!(a_command_that_cannot_be_executed).bases(&["busybox"]),
    test!(a_service_that_cannot_be_executed).bases(&["busybox"]),
    test!(a_console_with_too_many_readers).bases(&["busybox"]),
    test!(consoles_that_come_all_at_once).bases(&["busybox"]),
    test!(settings_that_cannot_work_are_refused_at_once).bases(&["busybox"]),
    test!(an_address_of_another_guest_is_refused_at_once).bases(&["busybox"]),
    test!(an_address_of_the_host_is_refused).bases(&["busybox"]),
];

fn a_guest_that_is_not_there(sandbox: &mut Sandbox) {
    for verb in ["restart", "start", "stop", "status", "inspect", "logs", "wait", "rm", "kill"] {
        sandbox.holm(&[verb, "nosuch"]).refused(&["there is no guest nosuch"]);
    }
    let lines = ["logs", "nosuch", "-n"];
    for number in ["-1", "x", "99999999999999999999999"] {
        let outcome = sandbox.holm(&[&lines[..], &[number]].concat());
        outcome.rejected(&[number, "is not a number of lines; write one such as 20"]);
    }
    sandbox.holm(&["stop", "-t", "-1", "nosuch"]).rejected(&["\"-1\" is not a time"]);
}

fn a_time_that_was_meant_for_wait(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    for verb in ["start", "restart"] {
        let outcome = sandbox.holm(&[verb, "--wait", "5", "box"]);
        outcome.refused(&["there is no guest 5", "--wait=5 waits so long"]);
        sandbox.holm(&["stop", "box"]).ok();
    }
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_command_in_a_guest_that_has_ended(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let command = ["exec", "box", "--", "true"];
    let is_told = |(status, said): (ExitStatus, String)| {
        assert_eq!(status.code(), Some(125), "{said}");
        assert!(said.contains("guest box is not running; `holm start box` starts it"), "{said}");
    };
    let mut late = Stopped::new(sandbox, &command, "exec-running");
    sandbox.holm(&["kill", "box"]).ok();
    is_told(late.resume(sandbox));
    // The command's process is there, and ends with the guest.
    sandbox.holm(&["start", "box"]).ok();
    let mut late = Stopped::new(sandbox, &command, "exec-prepared");
    sandbox.holm(&["kill", "box"]).ok();
    is_told(late.end(sandbox));
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_command_that_cannot_be_executed(sandbox: &mut Sandbox) {
    let args = ["--base", "busybox", "--net", "none", "--", "/nowhere"];
    let reason = ["ended before it was ready", "holm-init: /nowhere: not found"];
    sandbox.holm(&[&["launch", "box", "--wait"][..], &args].concat()).refused(&reason);
    sandbox.holm(&["start", "--wait", "box"]).refused(&reason);
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_service_that_cannot_be_executed(sandbox: &mut Sandbox) {
    let settings = [
        "services.good.command=sleep 100000",
        "services.bad.command=/nowhere",
        "services.bad.restart=always",
    ];
    let args: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let launch = ["launch", "box", "--wait", "--base", "busybox", "--net", "none"];
    sandbox.holm(&[&launch[..], &args].concat()).ok();
    sandbox.wait_for("a report of both services", || {
        let text = sandbox.holm(&["status", "box"]).ok().stdout;
        let line = text.lines().find(|line| line.starts_with("init reports"))?.to_owned();
        let says = line.contains("services: 1 running, 1 to be restarted, 0 ended");
        (says && line.contains("; bad cannot be executed, started again ")).then_some(())
    });
    remove(sandbox, "box");
}

fn a_console_with_too_many_readers(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let mut readers: Vec<Child> = (0..16)
        .map(|_| {
            let mut command = sandbox.command();
            command.args(["console", "--read-only", "box"]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("holm")
        })
        .collect();
    // The monitor greets each, and so has room for it, before it shows what the guest writes.
    exec(sandbox, "box", "echo seen > /dev/console").ok();
    sandbox.wait_for("one more to be refused", || {
        let outcome = sandbox.holm(&["console", "--read-only", "box"]);
        outcome.stderr.contains("shows its console to 16 others, and to no more").then_some(())
    });
    for reader in &mut readers {
        let _ = reader.kill();
        let _ = reader.wait();
    }
    remove(sandbox, "box");
}

/// Each is served, or told why not: none is only disconnected.
fn consoles_that_come_all_at_once(sandbox: &mut Sandbox) {
    const COUNT: usize = 24;
    launch_idle(sandbox, "box", &[]);
    let mut readers: Vec<Child> = (0..COUNT)
        .map(|_| {
            let mut command = sandbox.command();
            command.args(["console", "--read-only", "box"]).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("holm")
        })
        .collect();
    let mut refused = Vec::new();
    sandbox.wait_for("all but 16 to be refused", || {
        readers.retain_mut(|reader| {
            let Some(status) = reader.try_wait().expect("our child") else { return true };
            let mut said = String::new();
            let stderr = reader.stderr.take().expect("piped");
            { stderr }.read_to_string(&mut said).expect("text");
            refused.push((status.code(), said));
            false
        });
        (readers.len() <= 16).then_some(())
    });
    for (code, said) in refused {
        assert_eq!(code, Some(125), "{said}");
        assert!(said.contains("shows its console to 16 others, and to no more"), "{said}");
    }
    assert_eq!(readers.len(), 16, "they stay");
    for reader in &mut readers {
        let _ = reader.kill();
        let _ = reader.wait();
    }
    remove(sandbox, "box");
}

fn settings_that_cannot_work_are_refused_at_once(sandbox: &mut Sandbox) {
    let cases = [
        ("security.caps+=CAP_SYS_MODULE", "no guest may have CAP_SYS_MODULE"),
        ("devices+=/dev/nosuch", "this host has no such device"),
        ("devices+=/dev/null", "every guest has it"),
        ("mounts+=/srv:/dev", "nothing can be bound on /dev"),
        ("mounts+=/srv:/proc", "nothing can be bound on /proc"),
        ("mounts+=/srv:/sys/fs", "nothing can be bound on /sys/fs: /sys in a guest is Holm's"),
        ("net.address=169.254.7.7", "cannot be a guest's address"),
    ];
    sandbox.holm(&["create", "box", "--base", "busybox"]).ok();
    let before = sandbox.holm(&["inspect", "box"]).ok().stdout;
    for (change, reason) in cases {
        let create = ["create", "other", "--base", "busybox", "--set", &change.replace("+=", "=")];
        for args in [&["set", "box", change][..], &create] {
            let outcome = sandbox.holm(args);
            assert!(matches!(outcome.code(), 2 | 125), "{outcome}");
            assert!(outcome.stderr.contains(reason), "{outcome}");
        }
    }
    assert_eq!(sandbox.holm(&["inspect", "box"]).ok().stdout, before, "nothing was changed");
    // What has become impossible since does not keep anybody from changing something else.
    let path = sandbox.root().join("guests/box/guest.toml");
    let text = std::fs::read_to_string(&path).expect("guest.toml") + "devices = [\"/dev/gone\"]\n";
    std::fs::write(&path, text).expect("guest.toml");
    sandbox.holm(&["set", "box", "memory.limit=64M"]).ok();
    sandbox.holm(&["start", "box"]).refused(&["/dev/gone", "this host has no such device"]);
    sandbox.holm(&["rm", "box"]).ok();
}

fn an_address_of_another_guest_is_refused_at_once(sandbox: &mut Sandbox) {
    let private = ["--base", "busybox", "--", "sleep", "100000"];
    sandbox.holm(&[&["launch", "one"][..], &private].concat()).ok();
    sandbox.holm(&[&["create", "two"][..], &private].concat()).ok();
    let status = sandbox.holm(&["status", "one", "--json"]).ok().json();
    for address in status["addresses"].as_array().expect("addresses") {
        let change = format!("net.address={}", address.as_str().expect("an address"));
        let belongs = ["belongs to guest one"];
        sandbox.holm(&["set", "two", &change]).refused(&belongs);
        // Its own, which it has anyway.
        sandbox.holm(&["set", "one", &change]).ok();
        sandbox.holm(&["set", "two", &change]).refused(&belongs);
        let create = ["create", "three", "--base", "busybox", "--set", &change];
        sandbox.holm(&create).refused(&belongs);
    }
    sandbox.holm(&["set", "one", "net.address=10.9.8.7"]).ok();
    sandbox.holm(&["set", "two", "net.address=10.9.8.7"]).refused(&["belongs to guest one"]);
    sandbox.holm(&["set", "two", "net.address=10.9.8.8"]).ok();
    remove(sandbox, "one");
    sandbox.holm(&["rm", "two"]).ok();
}

/// At once, and at the start if the host has got it since.
fn an_address_of_the_host_is_refused(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let holm = |args: &[&str]| topology.host.with(|| sandbox.holm(args));
    let private = ["--base", "busybox", "--", "sleep", "100000"];
    holm(&[&["create", "box"][..], &private].concat()).ok();
    for (hosts, later) in [("192.0.2.2", "198.51.100.7"), ("2001:db8::2", "2001:db8:7::7")] {
        let change = format!("net.address={hosts}");
        let said = [hosts, "an address of this host itself", "set another one"];
        holm(&["set", "box", &change]).refused(&said);
        holm(&["create", "two", "--base", "busybox", "--set", &change]).refused(&said);
        holm(&["set", "box", &format!("net.address={later}")]).ok();
        topology.host.sh(&format!("ip addr add {later} dev lo"));
        holm(&["start", "box"]).refused(&[later, "an address of this host itself"]);
        topology.host.sh(&format!("ip addr del {later} dev lo"));
        // Its own, to which the host has a route.
        holm(&["start", "box"]).ok();
        holm(&["restart", "box"]).ok();
        holm(&["set", "box", "restart=always", &format!("net.address={later}")]).ok();
        holm(&["stop", "box"]).ok();
    }
    // Without a network of its own the guest has none of them.
    holm(&["set", "box", "net.address=", "net.mode=host"]).ok();
    holm(&["rm", "box"]).ok();
}
