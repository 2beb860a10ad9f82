//! What a guest writes to its console is kept, within bounds.

use std::process::Stdio;

use super::{COUNT, end, launch, logs};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_log_is_bounded_and_rotated).bases(&["busybox"]),
    test!(logging_continues_after_an_error).bases(&["busybox"]),
    test!(a_log_is_followed_until_the_guest_has_ended).bases(&["busybox"]),
];

fn a_log_is_bounded_and_rotated(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "seq 600000; echo the end; sleep 1000");
    sandbox.wait_for("the end", || {
        sandbox.holm(&["logs", "-n", "1", "g"]).stdout.starts_with("the end").then_some(())
    });
    let directory = sandbox.root().join("guests/g");
    for name in ["log", "log.1"] {
        let size = directory.join(name).metadata().unwrap().len();
        assert!((1..=1 << 20).contains(&size), "{name}: {size}");
    }
    let text = logs(sandbox);
    let numbers: Vec<u32> =
        text.lines().skip(1).map_while(|line| line.trim().parse().ok()).collect();
    assert!(numbers.len() > 100_000 && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    sandbox.holm(&["kill", "g"]).ok();
}

/// A directory in its place cannot be opened, like a new file on a full disk.
fn logging_continues_after_an_error(sandbox: &mut Sandbox) {
    let args = ["create", "g", "--base", "busybox", "--net", "none", "--", "sh", "-c", COUNT];
    sandbox.holm(&args).ok();
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
    // Of a stopped guest `logs -f` prints the log and ends.
    let again = sandbox.holm(&["logs", "-f", "-n", "1", "g"]).ok();
    assert_eq!(again.stdout, "the end\r\n");
    assert_eq!(end(sandbox).to_string(), "exited 0");
    sandbox.holm(&["rm", "g"]).ok();
}
