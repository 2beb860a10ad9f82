//! The console: readers, keys, terminals and escape sequences.

use super::{launch, logs};
use crate::command;
use crate::sandbox::Sandbox;
use crate::terminal;
use crate::test::{Test, test};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(a_console_has_many_readers_and_takes_keys).bases(&["busybox"]),
    test!(a_guest_cannot_control_a_terminal_that_shows_it).bases(&["busybox"]),
    test!(a_terminal_is_the_guests_own).bases(&["busybox"]),
];

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
    // A reader is connected once it has read something, so keys are sent until all have.
    let mut outputs: Vec<_> = readers.iter_mut().map(|r| r.stdout.take().unwrap()).collect();
    let (tell, hear) = std::sync::mpsc::channel();
    for mut output in outputs.drain(..) {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 5];
            std::io::Read::read_exact(&mut output, &mut bytes).unwrap();
            tell.send(bytes).unwrap();
            // Read on, or the reader would block when it is asked to end.
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

fn a_guest_cannot_control_a_terminal_that_shows_it(sandbox: &mut Sandbox) {
    let script =
        r"printf 'begin \033[31mred\033[0m \033]0;title\007 \033[6n \233 end\n'; sleep 1000";
    launch(sandbox, &[], script);
    let text = sandbox.wait_for("the guest's output", || {
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

fn a_terminal_is_the_guests_own(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let script = "test -t 0 && test -t 1 && tty && stty size";
    for args in [
        &["exec", "g", "--", "sh", "-c", script][..],
        &["run", "--base", "busybox", "--net", "none", "--", "sh", "-c", script],
    ] {
        let (master, slave) = terminal::open();
        let size = rustix::termios::Winsize { ws_row: 33, ws_col: 101, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = sandbox.command();
        command.args(args).stdin(stdio()).stdout(stdio()).stderr(stdio());
        let mut child = command.spawn().unwrap();
        assert!(child.wait().unwrap().success(), "{args:?}");
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
        assert!(text.contains("/dev/pts/") && text.contains("33 101"), "{args:?}: {text:?}");
    }
    sandbox.holm(&["kill", "g"]).ok();
}
