//! The life of a guest: create, start, use, stop, remove.

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::command;
use crate::guest::{ended, exec, launch_idle, pid, remove, status};
use crate::host::Snapshot;
use crate::process::{is_stopped, kill};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(run_passes_output_and_status_on).bases(&["busybox"]),
    test!(run_passes_input_on).bases(&["busybox"]),
    test!(a_command_that_is_not_there).bases(&["busybox"]),
    test!(starts_answers_and_stops).bases(&["busybox"]),
    test!(signals_reach_process_1_and_kill_reaches_all).bases(&["busybox"]),
    test!(a_run_can_be_controlled).bases(&["busybox"]),
    test!(the_host_name_follows_the_settings).bases(&["busybox"]),
    test!(ssh_keys_follow_the_settings).bases(&["busybox"]),
    test!(keeps_its_files_from_one_start_to_the_next).bases(&["busybox"]),
    test!(exec_waits_until_the_mounts_are_complete).bases(&["busybox"]),
    test!(inherits_nothing_from_its_starter).bases(&["busybox"]),
    test!(has_namespaces_of_its_own).bases(&["busybox"]),
    test!(is_not_in_the_hosts_mounts).bases(&["busybox"]),
    test!(refusals_name_the_guest).bases(&["busybox"]),
    test!(several_start_and_stop_at_once).bases(&["busybox"]),
    test!(autostart_follows_the_order).bases(&["busybox"]),
];

const RUN: [&str; 5] = ["run", "--base", "busybox", "--net", "none"];

fn run_passes_output_and_status_on(sandbox: &mut Sandbox) {
    let args = [&RUN[..], &["--", "sh", "-c", "echo out; echo err >&2; exit 7"]].concat();
    let outcome = sandbox.holm(&args);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code()),
        ("out\n", "err\n", 7),
        "{outcome}"
    );
    let args = [&RUN[..], &["--", "sh", "-c", "kill -TERM $$"]].concat();
    let outcome = sandbox.holm(&args);
    assert_eq!(outcome.code(), 128 + 15, "{outcome}");
}

fn run_passes_input_on(sandbox: &mut Sandbox) {
    let input = vec![b'x'; 1 << 20];
    let mut command = sandbox.command();
    command.args([&RUN[..], &["--", "sh", "-c", "wc -c"]].concat());
    let outcome = command::run(&mut command, &input, sandbox.limit()).ok();
    assert_eq!(outcome.stdout.trim(), "1048576", "{outcome}");
}

fn a_command_that_is_not_there(sandbox: &mut Sandbox) {
    let outcome = sandbox.holm(&[&RUN[..], &["--", "/no/such/program"]].concat());
    assert!([125, 127].contains(&outcome.code()), "{outcome}");
    assert!(outcome.stderr.contains("/no/such/program"), "the message names it\n{outcome}");
}

fn starts_answers_and_stops(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let first = status(sandbox, "box");
    assert!(["running", "ready"].contains(&first["state"].as_str().unwrap_or_default()), "{first}");
    let listed = sandbox.holm(&["ls", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");

    assert_eq!(exec(sandbox, "box", "echo hi").ok().stdout, "hi\n");
    assert_eq!(exec(sandbox, "box", "exit 9").code(), 9);
    assert_eq!(exec(sandbox, "box", "hostname").ok().stdout, "box\n");

    sandbox.holm(&["rm", "box"]).refused(&["box"]);
    sandbox.holm(&["start", "box"]).refused(&["box"]);
    sandbox.holm(&["stop", "box"]).ok();
    let stopped = status(sandbox, "box");
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(stopped["last_run"]["requested"], true, "{stopped}");
    sandbox.holm(&["exec", "box", "true"]).refused(&["box"]);

    sandbox.holm(&["start", "box"]).ok();
    assert_ne!(pid(&status(sandbox, "box"), "init_pid"), pid(&first, "init_pid"));
    remove(sandbox, "box");
    assert_eq!(sandbox.holm(&["ls", "--json"]).ok().json(), Value::Array(Vec::new()));
}

/// Process 1 is Holm's own init, which passes signals on to the command.
fn signals_reach_process_1_and_kill_reaches_all(sandbox: &mut Sandbox) {
    let script = "trap 'echo printed' USR1; trap 'exit 5' TERM; (trap '' USR1; exec sleep 1000) & \
                  echo begin; while :; do sleep 0.05; done";
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--", "sh", "-c", script];
    sandbox.holm(&args).ok();
    let says = |text: &str| {
        let what = format!("the guest says {text}");
        sandbox
            .wait_for(&what, || sandbox.holm(&["logs", "box"]).stdout.contains(text).then_some(()));
    };
    says("begin");
    sandbox.holm(&["kill", "--signal", "SIGUSR1", "box"]).ok();
    says("printed");
    let printed = sandbox.holm(&["kill", "-s", "15", "box", "--json"]).ok().json();
    assert_eq!(printed["signal"], "SIGTERM");
    let printed = sandbox.holm(&["wait", "box", "--json"]).ok().json();
    assert_eq!(ended(&printed), "exited 5", "it ended as its handler says");
    sandbox.holm(&["kill", "-s", "USR1", "box"]).refused(&["box", "not running"]);
    sandbox.holm(&["kill", "--all"]).ok();

    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["kill", "--signal", "9", "box"]).ok();
    assert_eq!(status(sandbox, "box")["state"], "stopped");
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_run_can_be_controlled(sandbox: &mut Sandbox) {
    let start = |sandbox: &Sandbox, script: &str| {
        let args = ["--name", "once", "--", "sh", "-c", script];
        let mut command = sandbox.command();
        command.args([&RUN[..], &args].concat()).stdout(Stdio::piped());
        let mut run = command.spawn().expect("holm run starts");
        let mut line = String::new();
        let output = run.stdout.as_mut().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        assert_eq!(line, "here\n");
        run
    };
    let mut run = start(sandbox, "trap 'exit 3' HUP; echo here; while :; do sleep 1; done");
    assert_eq!(exec(sandbox, "once", "hostname").ok().stdout, "once\n");
    sandbox.holm(&["freeze", "once"]).ok();
    assert_eq!(status(sandbox, "once")["state"], "frozen");
    sandbox.holm(&["thaw", "once"]).ok();
    sandbox.holm(&["kill", "--signal", "HUP", "once"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(3));

    let mut run = start(sandbox, "echo here; sleep 1000");
    sandbox.holm(&["stop", "once"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(128 + 15));
    let mut run = start(sandbox, "trap '' TERM; echo here; while :; do sleep 1; done");
    sandbox.holm(&["kill", "once"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(128 + 9));
    assert!(sandbox.holm(&["stop", "once"]).stderr.contains("once"));
    assert_eq!(sandbox.holm(&["ls", "--json"]).ok().json(), serde_json::json!([]));
}

fn the_host_name_follows_the_settings(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let name = |sandbox: &Sandbox| exec(sandbox, "box", "cat /etc/hostname").ok().stdout;
    assert_eq!(name(sandbox), "box\n");
    exec(sandbox, "box", "echo own >/etc/hostname; echo 10.0.0.1 mine >>/etc/hosts").ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(name(sandbox), "own\n", "without a setting the name is the guest's");

    sandbox.holm(&["set", "box", "hostname=given"]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(name(sandbox), "given\n");
    let hosts =
        exec(sandbox, "box", "grep -E 'given|mine|localhost$' /etc/hosts; stat -c %a /etc/hosts")
            .ok();
    let hosts: Vec<&str> = hosts.stdout.lines().collect();
    assert_eq!(hosts, ["127.0.1.1 given", "127.0.0.1 localhost", "10.0.0.1 mine", "644"]);
    remove(sandbox, "box");
}

fn ssh_keys_follow_the_settings(sandbox: &mut Sandbox) {
    let keys = |sandbox: &Sandbox| {
        let text = exec(sandbox, "box", "cat /root/.ssh/authorized_keys").ok().stdout;
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, two) =
        ("ssh-ed25519 AAAAC3NzaC1lZDI1 one@here", "ssh-ed25519 AAAAC3NzaC1lZDI2 two@here");
    launch_idle(sandbox, "box", &["--set", &format!("ssh.keys+={one}")]);
    assert_eq!(keys(sandbox), [one]);
    let modes = exec(sandbox, "box", "stat -c %a /root/.ssh /root/.ssh/authorized_keys").ok();
    assert_eq!(modes.stdout, "700\n600\n");
    exec(sandbox, "box", "echo 'the guest has its own' >>/root/.ssh/authorized_keys").ok();

    let set =
        sandbox.holm(&["set", "box", &format!("ssh.keys-={one}"), &format!("ssh.keys+={two}")]);
    assert!(set.ok().stdout.contains("at the next start: ssh.keys"));
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(keys(sandbox), [two, "the guest has its own"]);
    sandbox.holm(&["unset", "box", "ssh.keys"]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(keys(sandbox), ["the guest has its own"]);

    // A link is not followed, where ever it leads.
    exec(sandbox, "box", "cd /root/.ssh && mv authorized_keys /own && ln -s /own authorized_keys")
        .ok();
    sandbox.holm(&["set", "box", &format!("ssh.keys={one}")]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "cat /own").ok().stdout, "the guest has its own\n");
    remove(sandbox, "box");
}

fn keeps_its_files_from_one_start_to_the_next(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    exec(sandbox, "box", "echo kept >/root/note && chown 33:44 /root/note && rm /etc/passwd").ok();
    sandbox.holm(&["restart", "box"]).ok();
    let outcome = exec(
        sandbox,
        "box",
        "cat /root/note; stat -c %u:%g /root/note; test -e /etc/passwd || echo gone",
    );
    assert_eq!(outcome.ok().stdout, "kept\n33:44\ngone\n");
    sandbox
        .holm(&["launch", "other", "--base", "busybox", "--net", "none", "--", "sleep", "100000"])
        .ok();
    exec(sandbox, "other", "test -e /etc/passwd && ! test -e /root/note").ok();
    remove(sandbox, "box");
    remove(sandbox, "other");
}

/// Namespaces, as seen by commands inside.
fn has_namespaces_of_its_own(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let outcome = exec(
        sandbox,
        "box",
        "cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l; ls /sys/class/net; id -u",
    );
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let processes: u32 =
        lines.get(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{outcome}"));
    assert!(processes < 10, "sees only its own processes\n{outcome}");
    assert_eq!(lines.get(2..), Some(&["lo", "0"][..]), "{outcome}");
    let map = exec(sandbox, "box", "cat /proc/self/uid_map").ok().stdout;
    let fields: Vec<u32> = map.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    assert!(matches!(fields[..], [0, base, 65536] if base >= 1 << 26), "{map}");
    let uptime = exec(sandbox, "box", "cut -d. -f1 /proc/uptime").ok().stdout;
    let host: u64 = first_number(&std::fs::read_to_string("/proc/uptime").expect("uptime"));
    assert!(
        first_number(&uptime) < host.max(60),
        "an uptime of its own: {uptime}, the host's {host}"
    );
    remove(sandbox, "box");
}

fn first_number(text: &str) -> u64 {
    text.split(['.', '\n', ' ']).next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX)
}

fn is_not_in_the_hosts_mounts(sandbox: &mut Sandbox) {
    let before = Snapshot::take();
    launch_idle(sandbox, "box", &[]);
    let root = sandbox.root().to_string_lossy().into_owned();
    let mounts: Vec<String> = Snapshot::take()
        .since(&before, sandbox.root())
        .into_iter()
        .filter(|item| item.starts_with("mount ") && item.contains(&root))
        .collect();
    assert!(mounts.is_empty(), "{mounts:?}");
    remove(sandbox, "box");
}

fn refusals_name_the_guest(sandbox: &mut Sandbox) {
    sandbox.holm(&["start", "nobody"]).refused(&["nobody"]);
    sandbox.holm(&["stop", "nobody"]).refused(&["nobody"]);
    sandbox.holm(&["create", "../up", "--base", "busybox"]).rejected(&["../up"]);
    sandbox.holm(&["create", "box", "--base", "nothing"]).refused(&["nothing"]);
    sandbox.holm(&["create", "box", "--base", "busybox"]).ok();
    sandbox.holm(&["create", "box", "--base", "busybox"]).refused(&["box"]);
    sandbox
        .holm(&["create", "two", "--base", "busybox", "--set", "memory.limt=1G"])
        .rejected(&["memory.limit"]);
    sandbox.holm(&["rm", "box"]).ok();
}

fn several_start_and_stop_at_once(sandbox: &mut Sandbox) {
    let names = ["a", "b", "c", "d"];
    for name in names {
        let args = ["create", name, "--base", "busybox", "--net", "none", "--", "sleep", "100000"];
        sandbox.holm(&args).ok();
    }
    sandbox.holm(&[&["start"][..], &names].concat()).ok();
    let listed = sandbox.holm(&["ls", "--json"]).ok().json();
    let guests = listed.as_array().expect("a list");
    let bases: Vec<i64> =
        guests.iter().filter_map(|guest| guest["id_range"]["first"].as_i64()).collect();
    assert_eq!(bases.len(), names.len(), "{listed}");
    for (at, base) in bases.iter().enumerate() {
        assert!(
            bases[..at].iter().all(|other| (other - base).abs() >= 65536),
            "id ranges overlap: {bases:?}"
        );
    }
    sandbox.holm(&["stop", "--all"]).ok();
    sandbox.holm(&["rm", "--all"]).ok();
}

/// Each number's guests are started at once, after those of lower numbers are up: seen with starts
/// that stop half way.
fn autostart_follows_the_order(sandbox: &mut Sandbox) {
    // By their names they would be started in another order.
    let places = [("a-last", "9"), ("broken", "5"), ("off", "false"), ("y", "2"), ("z", "2")];
    for (name, autostart) in places {
        let key = format!("autostart={autostart}");
        let args = ["create", name, "--base", "busybox", "--net", "none", "--set", &key, "--"];
        sandbox.holm(&[&args[..], &["sleep", "100000"]].concat()).ok();
    }
    std::fs::write(sandbox.root().join("guests/broken/guest.toml"), "nonsense").unwrap();
    let mut start = sandbox.command_with_fault("HOLM_STOP_AT", "root");
    start.args(["start", "--autostart", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = start.spawn().expect("holm runs");
    let stopped = |name: &str| {
        sandbox.wait_for("the start stops half way", || {
            let launcher = status(sandbox, name)["monitor_pid"].as_i64()?;
            let launcher = Pid::from_raw(i32::try_from(launcher).ok()?)?;
            is_stopped(launcher.as_raw_nonzero().get().unsigned_abs()).then_some(launcher)
        })
    };
    let state = |name: &str| status(sandbox, name)["state"].as_str().map(str::to_owned);
    let first = ["y", "z"].map(stopped);
    assert_eq!(state("a-last").as_deref(), Some("stopped"), "its turn has not come");
    kill(first[0], Signal::CONT);
    sandbox.wait_for("the first is up", || (state("y")? == "ready").then_some(()));
    assert_eq!(state("a-last").as_deref(), Some("stopped"), "one of the first is not up");
    kill(first[1], Signal::CONT);
    let last = stopped("a-last");
    assert_eq!(state("z").as_deref(), Some("ready"), "before the last began");
    kill(last, Signal::CONT);
    let outcome = start.wait_with_output().expect("our child");
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.status.code(), Some(125), "one cannot be started\n{printed}");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let names: Vec<&str> =
        printed.as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["broken", "y", "z", "a-last"], "{printed}");
    let running = sandbox.holm(&["ls", "--running", "--quiet"]).ok();
    assert_eq!(running.stdout, "a-last\ny\nz\n", "{running}");
    sandbox.holm(&["rm", "broken"]).ok();
    sandbox.holm(&["start", "--autostart"]).ok();
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}

fn inherits_nothing_from_its_starter(sandbox: &mut Sandbox) {
    let script =
        "umask 077; echo 300 > /proc/self/oom_score_adj; exec nice -n 5 taskset 1 \"$0\" \"$@\"";
    let mut starter = std::process::Command::new("sh");
    starter.env("HOLM_ROOT", sandbox.root()).args(["-c", script]).arg(&sandbox.options.holm);
    starter.args(["launch", "g", "--base", "busybox", "--", "/bin/sleep", "1000"]);
    sandbox.run(&mut starter).ok();
    let look = "cat /proc/1/oom_score_adj; cut -d' ' -f19 /proc/1/stat; stat -c %a /etc/hostname; \
                grep Cpus_allowed_list /proc/1/status";
    let seen = sandbox.holm(&["exec", "g", "--", "/bin/sh", "-c", look]).ok();
    assert!(seen.stdout.starts_with("0\n0\n644\n"), "{seen}");
    let host = std::fs::read_to_string("/proc/1/status").expect("the host's init");
    let cpus =
        |text: &str| text.lines().find(|l| l.starts_with("Cpus_allowed_list")).map(str::to_owned);
    assert_eq!(cpus(&seen.stdout), cpus(&host), "{seen}");

    // A command keeps a lower priority of its caller, but not a higher one: niceness, policy, OOM
    // score.
    let look = "cut -d' ' -f19,41 /proc/self/stat; cat /proc/self/oom_score_adj";
    // The tests may have been started with some niceness themselves.
    let own = rustix::process::getpriority_process(None).expect("a niceness");
    for (adjust, nice, policy, kept) in [("-500", -5, "-f 1", "0"), ("300", 5, "-o 0", "300")] {
        let wanted = format!("{} 0\n{kept}\n", (own + nice).max(0));
        let script = format!(
            "echo {adjust} >/proc/self/oom_score_adj; exec chrt {policy} nice -n {nice} \"$0\" \"$@\""
        );
        for args in [&["exec", "g"][..], &RUN] {
            let mut starter = std::process::Command::new("sh");
            starter.env("HOLM_ROOT", sandbox.root()).args(["-c", &script]);
            starter.arg(&sandbox.options.holm).args(args).args(["--", "/bin/sh", "-c", look]);
            assert_eq!(sandbox.run(&mut starter).ok().stdout, wanted, "{args:?}");
        }
    }
    remove(sandbox, "g");
}

/// Until init has its own mount namespace it shares the launcher's, with the host's root.
fn exec_waits_until_the_mounts_are_complete(sandbox: &mut Sandbox) {
    let args = ["create", "g", "--base", "busybox", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&args).ok();
    let mut command = sandbox.command_with_fault("HOLM_STOP_AT", "root");
    let mut start = command.args(["start", "g"]).spawn().expect("holm");
    let launcher = sandbox.wait_for("the launcher stops itself", || {
        let status = sandbox.holm(&["status", "g", "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).ok()?;
        let launcher = status["monitor_pid"].as_i64()?;
        let process = std::fs::read_to_string(format!("/proc/{launcher}/stat")).ok()?;
        process.contains(") T ").then_some(launcher)
    });
    let outcome = sandbox.holm(&["exec", "g", "--cwd", "/etc", "--", "/bin/ls", "/"]);
    let resume = std::process::Command::new("kill").args(["-CONT", &launcher.to_string()]).status();
    assert!(resume.is_ok_and(|status| status.success()), "{launcher} goes on");
    assert!(start.wait().expect("our child").success(), "the start goes well");
    outcome.refused(&["namespaces", "still being started", "try again"]);
    sandbox.holm(&["exec", "g", "--", "/bin/true"]).ok();
    remove(sandbox, "g");
}
