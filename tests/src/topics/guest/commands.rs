//! Commands in a guest: user, directory, environment, streams, signals and terminals.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::command;
use crate::guest::{exec, launch_idle, remove, status};
use crate::sandbox::Sandbox;
use crate::terminal::Terminal;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(exec_runs_as_asked).bases(&["busybox"]),
    test!(exec_passes_input_output_and_status_on).bases(&["busybox"]),
    test!(exec_names_what_it_cannot_do).bases(&["busybox"]),
    test!(the_callers_secrets_are_hidden).bases(&["busybox"]),
    test!(signals_reach_the_command).bases(&["busybox"]),
    test!(keys_of_a_terminal_are_signals).bases(&["busybox"]),
    test!(enter_is_a_login_that_follows_the_window).bases(&["busybox"]),
    test!(keys_leave_the_console).bases(&["busybox"]),
];

const RUN: [&str; 6] = ["run", "--base", "busybox", "--net", "none", "--"];
const EXEC: [&str; 3] = ["exec", "box", "--"];

fn exec_runs_as_asked(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--env", "OF=init"]);
    exec(sandbox, "box", "echo staff:x:50:daemon >>/etc/group").ok();
    let run = |options: &[&str], script: &str| {
        let mut command = sandbox.command();
        command.env("GIVEN", "on the host");
        command.args([&["exec"], options, &["box", "--", "sh", "-c", script]].concat());
        sandbox.run(&mut command).ok().stdout
    };
    let who = "id -u; id -g; id -G; pwd; echo $HOME $USER $container; touch /tmp/$$ && stat -c %u:%g /tmp/$$";
    assert_eq!(run(&[], who), "0\n0\n0\n/root\n/root root holm\n0:0\n");
    let daemon = "1\n1\n1 50\n/usr/sbin\n/usr/sbin daemon holm\n1:1\n";
    assert_eq!(run(&["--user", "daemon"], who), daemon);
    assert_eq!(run(&["-u", "1"], who), daemon);
    assert_eq!(
        run(&["-u", "1000:staff", "--cwd", "/tmp"], "id -u; id -g; pwd"),
        "1000\n50\n/tmp\n"
    );
    assert_eq!(run(&["-w", "/var/www"], "cat index.html"), "It works.\n");

    let args = ["-e", "A=b=c", "--env", "GIVEN", "-e", "ABSENT", "-e", "HOME=/x"];
    let seen = run(&args, "echo $A, $GIVEN, ${ABSENT-none}, $HOME");
    assert_eq!(seen, "b=c, on the host, none, /x\n");
    assert_eq!(
        run(&[], "env | grep -c -e ^GIVEN -e ^HOLM; true"),
        "0\n",
        "nothing comes by itself"
    );
    remove(sandbox, "box");
}

/// [S12] Until it executes the command, the process that `holm exec` makes in the guest has the
/// command line of its caller, of which it is a copy.
fn the_callers_secrets_are_hidden(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let mut command = sandbox.command();
    command.args(["exec", "-e", "TOKEN=secret1", "--env=OTHER=secret2", "box", "--", "cat"]);
    let mut caller = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("holm");
    let path = format!("/proc/{}/cmdline", caller.id());
    let shown = || std::fs::read_to_string(&path).unwrap_or_default();
    sandbox.wait_for("the command runs", || {
        exec(sandbox, "box", "pidof cat").status.success().then_some(())
    });
    let words = shown().replace('\0', " ");
    assert!(
        words.contains("TOKEN= ") && words.contains("OTHER= ") && words.contains("cat"),
        "{words}"
    );
    assert!(!words.contains("secret"), "{words}");
    drop(caller.stdin.take());
    assert!(caller.wait().expect("its end").success());
    remove(sandbox, "box");
}

fn exec_passes_input_output_and_status_on(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let input = vec![b'x'; 4 << 20];
    let mut cat = sandbox.command();
    cat.args(["exec", "box", "cat"]);
    let outcome = command::run(&mut cat, &input, sandbox.limit()).ok();
    assert!(outcome.stdout.as_bytes() == input, "{} bytes came back", outcome.stdout.len());
    let outcome = exec(sandbox, "box", "echo out; echo err >&2; exit 7");
    let seen = (outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code());
    assert_eq!(seen, ("out\n", "err\n", 7), "{outcome}");
    assert_eq!(exec(sandbox, "box", "kill -KILL $$").code(), 128 + 9);
    remove(sandbox, "box");
}

fn exec_names_what_it_cannot_do(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let said = |args: &[&str], status: i32, about: &str| {
        let outcome = sandbox.holm(&[&["exec", "box"], args].concat());
        assert_eq!(outcome.code(), status, "{outcome}");
        assert!(outcome.stderr.contains(about), "it names {about}\n{outcome}");
    };
    said(&["--user", "joe", "true"], 125, "joe");
    said(&["--user", "daemon:wheel", "true"], 125, "daemon:wheel");
    // No uid beyond the guest's id range, nor the one that the kernel reserves (-1).
    for number in ["65536", "1:65536", "4294967295", "4294967296", "-1"] {
        said(&[&format!("--user={number}"), "true"], 125, number);
    }
    said(&["--cwd", "/no/directory", "true"], 125, "/no/directory");
    said(&["/etc/passwd"], 126, "/etc/passwd");
    said(&["no-such-program"], 127, "no-such-program");
    // Not by way of the guest's own /etc/passwd either.
    exec(sandbox, "box", "echo huge:x:4294967295:root >>/etc/group").ok();
    assert_eq!(exec(sandbox, "box", "id -G").ok().stdout, "0\n");
    exec(sandbox, "box", "echo root:x:4294967295:0::/:/bin/sh >/etc/passwd").ok();
    said(&["true"], 125, "user root");
    remove(sandbox, "box");
}

/// A shell that prints `up`, and exits with 9 when it gets the signal.
fn trapping(signal: &str) -> String {
    format!("trap 'echo got it; exit 9' {signal}; echo up; while :; do sleep 0.1; done")
}

fn signals_reach_the_command(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let cases = [
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("USR1", Signal::USR1),
    ];
    for head in [&EXEC[..], &RUN] {
        for (name, signal) in cases {
            let script = trapping(name);
            assert_eq!(
                sent(sandbox, &[head, &["sh", "-c", &script]].concat(), signal),
                (Some(9), "got it\n".into())
            );
        }
        let script = "echo up; exec sleep 1000";
        let (code, _) = sent(sandbox, &[head, &["sh", "-c", script]].concat(), Signal::INT);
        assert_eq!(code, Some(128 + 2), "{head:?} ends as its command does");
    }
    remove(sandbox, "box");
}

/// Starts `holm ARGS`, sends it `signal` when its command prints `up`; returns its status and the
/// rest of its output.
fn sent(sandbox: &Sandbox, args: &[&str], signal: Signal) -> (Option<i32>, String) {
    let mut holm = sandbox.command();
    let mut child = holm.args(args).stdout(Stdio::piped()).spawn().expect("holm starts");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("its output");
    (child.wait().expect("our own child").code(), rest)
}

fn on_a_terminal(sandbox: &Sandbox, args: &[&str]) -> Terminal {
    let mut command: Command = sandbox.command();
    command.args(args);
    Terminal::start(&command)
}

/// The guest's terminal turns them into signals for the command, not for `holm`.
fn keys_of_a_terminal_are_signals(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    for head in [&EXEC[..], &RUN] {
        for (key, signal) in [("\x03", "INT"), ("\x1c", "QUIT")] {
            let script = trapping(signal);
            let mut terminal = on_a_terminal(sandbox, &[head, &["sh", "-c", &script]].concat());
            terminal.wait_for(sandbox, "up");
            terminal.type_in(key);
            assert_eq!(terminal.end(sandbox), Some(9), "{head:?}: {}", terminal.text());
            assert!(terminal.is_as_before());
        }
        let script = "echo up; exec sleep 1000";
        let mut terminal = on_a_terminal(sandbox, &[head, &["sh", "-c", script]].concat());
        terminal.wait_for(sandbox, "up");
        terminal.type_in("\x03");
        assert_eq!(terminal.end(sandbox), Some(128 + 2), "{head:?}: {}", terminal.text());
    }
    remove(sandbox, "box");
}

fn enter_is_a_login_that_follows_the_window(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let mut terminal = on_a_terminal(sandbox, &["enter", "box"]);
    for (rows, columns) in [(33, 101), (44, 120)] {
        terminal.resize(rows, columns);
        sandbox.wait_for("the shell knows the size of its window", || {
            terminal.type_in("stty size\n");
            terminal.text().contains(&format!("{rows} {columns}")).then_some(())
        });
    }
    terminal.type_in("echo $0 in $PWD\n");
    terminal.wait_for(sandbox, "-sh in /root");
    terminal.type_in("exit 4\n");
    assert_eq!(terminal.end(sandbox), Some(4));
    assert!(terminal.is_as_before());

    let mut script = sandbox.command();
    script.args(["enter", "--user", "1000", "--cwd", "/tmp", "box"]);
    let outcome = command::run(&mut script, b"id -u; pwd; tty; exit 5\n", sandbox.limit());
    assert_eq!(
        (outcome.stdout.as_str(), outcome.code()),
        ("1000\n/tmp\nnot a tty\n", 5),
        "{outcome}"
    );
    remove(sandbox, "box");
}

fn keys_leave_the_console(sandbox: &mut Sandbox) {
    let script = "stty -echo; while read line; do echo got $line; done";
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--", "sh", "-c", script];
    sandbox.holm(&args).ok();
    let mut terminal = on_a_terminal(sandbox, &["console", "box"]);
    // Keys that are typed before it is connected may be lost.
    sandbox.wait_for("the guest hears", || {
        terminal.type_in("key\r");
        terminal.text().contains("got key").then_some(())
    });
    terminal.type_in("a\x1d\x1db\r");
    terminal.wait_for(sandbox, "got a\x1db");
    terminal.type_in("\x1dq");
    assert_eq!(terminal.end(sandbox), Some(0), "{}", terminal.text());
    assert!(terminal.is_as_before());
    assert_eq!(status(sandbox, "box")["state"], "ready", "the guest runs on");
    sandbox.holm(&["kill", "box"]).ok();
}
