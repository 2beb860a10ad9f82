//! Monitors and Holm's own init: consoles, logs, ends, and a monitor that is killed.

use crate::command;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::security::probe_folder;
use holm::monitor::Ended;
use holm::terminal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(a_killed_monitor_costs_no_line).bases(&["busybox"]),
    test!(an_adopted_guests_end_is_known).bases(&["busybox"]),
    test!(a_console_has_many_readers_and_takes_keys).bases(&["busybox"]),
    test!(a_log_is_bounded_and_turned).bases(&["busybox"]),
    test!(a_log_that_could_not_be_written_goes_on).bases(&["busybox"]),
    test!(a_log_is_followed_until_the_guest_has_ended).bases(&["busybox"]),
    test!(a_guest_commands_no_terminal_that_looks_at_it).bases(&["busybox"]),
    test!(nothing_sent_holds_a_monitor_up).bases(&["busybox"]),
    test!(init_reboots_and_powers_off).bases(&["busybox"]),
    test!(init_restarts_services_and_stops_them).bases(&["busybox"]),
    test!(init_says_why_a_command_cannot_run).bases(&["busybox"]),
    test!(a_terminal_is_the_guests_own).bases(&["busybox"]),
    test!(monitors_are_small).bases(&["busybox"]),
];

/// Makes and starts guest `g` without a network, on the busybox base.
fn launch(sandbox: &Sandbox, options: &[&str], script: &str) {
    let words = ["launch", "g", "--base", "busybox", "--net", "none"];
    sandbox.holm(&[&words, options, &["--", "sh", "-c", script]].concat()).ok();
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.holm(&["status", "g", "--json"]).ok().json()
}

fn number(status: &Value, key: &str) -> i32 {
    i32::try_from(status["state"][key].as_i64().unwrap()).unwrap()
}

fn logs(sandbox: &Sandbox) -> String {
    sandbox.holm(&["logs", "g"]).ok().stdout
}

/// Waits until the guest is stopped; says how it ended.
fn end(sandbox: &Sandbox) -> Ended {
    sandbox.wait_for("the guest ends", || {
        let status = status(sandbox);
        // Stopped is seen before the monitor has noted how: an adopter asks until somebody else has reaped init.
        let words = status["last"]["ended"].as_str().filter(|_| status["status"] == "stopped")?;
        Some(Ended::parse(words).expect("words of an end"))
    })
}

fn kill_monitor(sandbox: &Sandbox) -> i32 {
    let monitor = number(&status(sandbox), "monitor");
    kill_process(Pid::from_raw(monitor).unwrap(), Signal::KILL).unwrap();
    monitor
}

const COUNT: &str = "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.02; done";

fn a_killed_monitor_costs_no_line(sandbox: &mut Sandbox) {
    launch(sandbox, &[], COUNT);
    let init = number(&status(sandbox), "pid");
    for _ in 0..3 {
        let before = logs(sandbox).lines().count();
        let old = kill_monitor(sandbox);
        // Nobody reads now: the guest's terminal fills.
        std::thread::sleep(Duration::from_millis(200));
        let now = sandbox.wait_for("a new monitor", || {
            sandbox.holm(&["start", "g"]);
            let status = status(sandbox);
            (number(&status, "monitor") != old).then_some(status)
        });
        assert_eq!(number(&now, "pid"), init, "the same init");
        assert!(now["state"]["adopted"].is_i64(), "{now}");
        sandbox
            .wait_for("more lines", || (logs(sandbox).lines().count() > before + 5).then_some(()));
    }
    for (at, line) in logs(sandbox).lines().enumerate() {
        assert_eq!(line, format!("line {at}"));
    }
    sandbox.holm(&["stop", "g"]).ok();
}

fn an_adopted_guests_end_is_known(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "while [ ! -e /end ]; do sleep 0.05; done; exit 7");
    kill_monitor(sandbox);
    sandbox.holm(&["start", "g"]);
    sandbox.holm(&["exec", "g", "--", "touch", "/end"]).ok();
    let ended = end(sandbox);
    // The kernel tells others than the parent since Linux 6.15.
    let known = ["exited 7 adopted", "unknown adopted"].contains(&ended.to_string().as_str());
    assert!(known, "{ended}");
}

fn a_console_has_many_readers_and_takes_keys(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "stty -echo; echo begin; while read line; do echo got $line; done");
    sandbox.wait_for("the guest reads", || logs(sandbox).contains("begin").then_some(()));
    let mut readers: Vec<_> = (0..3)
        .map(|_| {
            let mut command = sandbox.command();
            command.args(["console", "--read-only", "g"]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Each is connected once it has read something: so type until all have.
    let mut outputs: Vec<_> = readers.iter_mut().map(|r| r.stdout.take().unwrap()).collect();
    let (tell, hear) = std::sync::mpsc::channel();
    for mut output in outputs.drain(..) {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 5];
            std::io::Read::read_exact(&mut output, &mut bytes).unwrap();
            tell.send(bytes).unwrap();
            // Read on: a reader whose output nobody takes does not leave in peace.
            std::io::copy(&mut output, &mut std::io::sink())
        });
    }
    let mut heard = Vec::new();
    sandbox.wait_for("all readers read", || {
        let mut console = sandbox.command();
        console.args(["console", "g"]);
        command::run(&mut console, b"key\n", sandbox.limit()).ok();
        heard.extend(hear.try_iter());
        (heard.len() == 3).then_some(())
    });
    assert!(logs(sandbox).contains("got key"));
    for mut reader in readers {
        kill_process(Pid::from_child(&reader), Signal::TERM).unwrap();
        assert!(reader.wait().unwrap().success(), "a reader leaves in peace");
    }
    sandbox.holm(&["kill", "g"]).ok();
}

fn a_log_is_bounded_and_turned(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "seq 600000; echo the end; sleep 1000");
    sandbox.wait_for("the end", || {
        sandbox.holm(&["logs", "-n", "1", "g"]).stdout.starts_with("the end").then_some(())
    });
    let folder = sandbox.root().join("guests/g");
    for name in ["log", "log.1"] {
        let size = folder.join(name).metadata().unwrap().len();
        assert!((1..=1 << 20).contains(&size), "{name}: {size}");
    }
    let text = logs(sandbox);
    let numbers: Vec<u32> =
        text.lines().skip(1).map_while(|line| line.trim().parse().ok()).collect();
    assert!(numbers.len() > 100_000 && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    sandbox.holm(&["kill", "g"]).ok();
}

/// A folder stands in its place, as little to be opened as a file on a full disk.
fn a_log_that_could_not_be_written_goes_on(sandbox: &mut Sandbox) {
    let words = ["create", "g", "--base", "busybox", "--net", "none", "--", "sh", "-c", COUNT];
    sandbox.holm(&words).ok();
    let log = sandbox.root().join("guests/g/log");
    std::fs::create_dir(&log).unwrap();
    sandbox.holm(&["start", "g"]).ok();
    std::fs::remove_dir(&log).unwrap();
    sandbox.wait_for("lines", || logs(sandbox).contains("line ").then_some(()));
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn a_log_is_followed_until_the_guest_has_ended(sandbox: &mut Sandbox) {
    let script = "echo run; until [ -e /go ]; do sleep 0.05; done; \
                  [ -e /again ] || { touch /again; reboot; sleep 1000; }; echo the end";
    launch(sandbox, &[], script);
    let mut follow = sandbox.command();
    let mut reader = follow.args(["logs", "-f", "g"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = reader.stdout.take().unwrap();
    let mut seen = [0; 5];
    std::io::Read::read_exact(&mut output, &mut seen).unwrap();
    sandbox.holm(&["exec", "g", "--", "touch", "/go"]).ok();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
    assert_eq!((&seen, rest.as_str()), (b"run\r\n", "run\r\nthe end\r\n"), "a reboot is no end");
    assert!(reader.wait().unwrap().success());
    // It is stopped now: all of it, and no waiting.
    let again = sandbox.holm(&["logs", "-f", "-n", "1", "g"]).ok();
    assert_eq!(again.stdout, "the end\r\n");
    assert_eq!(end(sandbox).to_string(), "exited 0");
    sandbox.holm(&["rm", "g"]).ok();
}

fn a_guest_commands_no_terminal_that_looks_at_it(sandbox: &mut Sandbox) {
    let script =
        r"printf 'begin \033[31mred\033[0m \033]0;title\007 \033[6n \233 end\n'; sleep 1000";
    launch(sandbox, &[], script);
    let text = sandbox.wait_for("the guest's words", || {
        let text = command_bytes(sandbox.command().args(["logs", "g"]));
        text.ends_with(b"end\r\n").then_some(text)
    });
    let sent = b"begin \x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[6n \x9b end\r\n";
    assert_eq!(text, sent, "a pipe gets what was written");
    let shown = command::on_a_terminal(sandbox.command().args(["logs", "g"]));
    assert_eq!(shown, "begin \x1b[31mred\x1b[0m ^[]0;title^G ^[[6n \\x9b end\r\n");
    sandbox.holm(&["kill", "g"]).ok();
}

fn command_bytes(command: &mut std::process::Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// While it takes messages, and when it hands over with some still there.
fn nothing_sent_holds_a_monitor_up(sandbox: &mut Sandbox) {
    let probe = format!("{}:/probe:ro", probe_folder(sandbox).display());
    let script = "[ -e /again ] || { touch /again; /probe/holm-probe linger /run/host/notify || exit 3; \
                  reboot; sleep 1000; }; echo the end";
    launch(sandbox, &["-v", &probe], script);
    let ended = end(sandbox).to_string();
    let logs = logs(sandbox);
    assert_eq!(ended, "exited 0", "{logs}");
    let answers: Vec<&str> = logs.lines().map(str::trim).collect();
    let expected = |answer| [[answer; 4].as_slice(), &["the end"]].concat();
    assert!(answers == expected("sent") || answers == expected("refused"), "{logs}");
    sandbox.holm(&["rm", "g"]).ok();
}

fn init_reboots_and_powers_off(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let first = number(&status(sandbox), "pid");
    sandbox.holm(&["exec", "g", "--", "reboot"]);
    sandbox.wait_for("the guest is up again", || {
        let status = status(sandbox);
        (status["state"]["pid"].as_i64().is_some_and(|pid| pid != 0 && pid != i64::from(first))
            && status["status"] == "ready")
            .then_some(())
    });
    sandbox.holm(&["exec", "g", "--", "poweroff"]);
    assert!(end(sandbox).is_poweroff());
}

fn init_restarts_services_and_stops_them(sandbox: &mut Sandbox) {
    let service = |name: &str, script: &str, restart: &str| {
        [
            format!("services.{name}.command=[\"sh\", \"-c\", \"{script}\"]"),
            format!("services.{name}.restart={restart}"),
        ]
    };
    let settings = [
        service("often", "echo often; sleep 0.1", "always"),
        service("once", "echo once", "no"),
        service("last", "trap 'echo stopping; exit' TERM; while :; do sleep 0.1; done", "no"),
    ]
    .concat();
    let mut words = vec!["launch", "g", "--base", "busybox", "--net", "none", "--init", "minimal"];
    for setting in &settings {
        words.extend(["--set", setting]);
    }
    sandbox.holm(&words).ok();
    sandbox
        .wait_for("three starts", || (logs(sandbox).matches("often").count() >= 3).then_some(()));
    assert_eq!(logs(sandbox).matches("once").count(), 1);
    sandbox.holm(&["stop", "g"]).ok();
    assert!(logs(sandbox).contains("stopping"));
    assert_eq!(end(sandbox).to_string(), "exited 0");
}

fn init_says_why_a_command_cannot_run(sandbox: &mut Sandbox) {
    for (program, status, words) in [
        ("/nowhere", 127, "holm-init: /nowhere: not found"),
        ("/etc/passwd", 126, "holm-init: /etc/passwd: not permitted to execute it"),
    ] {
        let outcome = sandbox.holm(&["run", "--base", "busybox", "--net", "none", "--", program]);
        assert_eq!(outcome.code(), status, "{outcome}");
        assert!(outcome.stderr.contains(words), "{outcome}");
    }
}

fn a_terminal_is_the_guests_own(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let script = "test -t 0 && test -t 1 && tty && stty size";
    for words in [
        &["exec", "g", "--", "sh", "-c", script][..],
        &["run", "--base", "busybox", "--net", "none", "--", "sh", "-c", script],
    ] {
        let (master, slave) = terminal::open("/dev/ptmx".as_ref()).unwrap();
        let size = rustix::termios::Winsize { ws_row: 33, ws_col: 101, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = sandbox.command();
        command.args(words).stdin(stdio()).stdout(stdio()).stderr(stdio());
        let mut child = command.spawn().unwrap();
        assert!(child.wait().unwrap().success(), "{words:?}");
        assert!(
            rustix::termios::tcgetattr(&slave)
                .unwrap()
                .local_modes
                .contains(rustix::termios::LocalModes::ECHO | rustix::termios::LocalModes::ICANON)
        );
        drop((command, slave));
        let mut text = String::new();
        // Ends in EIO once everything was read.
        let _ = std::io::Read::read_to_string(&mut std::fs::File::from(master), &mut text);
        assert!(text.contains("/dev/pts/") && text.contains("33 101"), "{words:?}: {text:?}");
    }
    sandbox.holm(&["kill", "g"]).ok();
}

fn monitors_are_small(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let status = status(sandbox);
    let kilobytes = |pid: i32, of: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(of));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    let pids = ["monitor", "pid"].map(|whose| number(&status, whose));
    let [monitor, init] = pids.map(|pid| kilobytes(pid, "Private_"));
    // The promise is 0.1 MiB, and 0.05 is the aim; alone on the host neither shares its program's pages.
    assert!(monitor + init <= 102, "monitor {monitor} KiB, init {init} KiB");
    let [monitor, init] = pids.map(|pid| kilobytes(pid, "Rss:"));
    assert!((1..150).contains(&init), "init has {init} KiB resident");
    assert!((1..150).contains(&monitor), "the monitor has {monitor} KiB resident");
    sandbox.holm(&["kill", "g"]).ok();
}
