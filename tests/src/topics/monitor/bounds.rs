//! What a monitor costs, and that no guest can block it.

use rustix::fs::{SealFlags, fcntl_get_seals};
use serde_json::Value;

use super::{end, launch, logs};
use crate::guest::{pid, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(monitors_are_small).bases(&["busybox"]),
    test!(no_message_blocks_a_monitor).bases(&["busybox"]),
    test!(nobody_can_write_a_monitors_program).bases(&["busybox"]),
];

fn monitors_are_small(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let first = status(sandbox, "g");
    let kilobytes = |pid: i32, of: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(of));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    let pids = |status: &Value| ["monitor_pid", "init_pid"].map(|whose| pid(status, whose));
    let [monitor, init] = pids(&first).map(|pid| kilobytes(pid, "Rss:"));
    assert!((1..150).contains(&init), "init has {init} KiB resident");
    assert!((1..150).contains(&monitor), "the monitor has {monitor} KiB resident");
    sandbox.holm(&["kill", "g"]).ok();
    // The promise is 0.1 MiB, the aim 0.05. A single guest shares its programs' pages with no
    // other. Where the kernel lets a stack begin, at random, decides about a page of each.
    let mut sizes = [(); 9].map(|()| {
        sandbox.holm(&["start", "g"]).ok();
        let pids = pids(&status(sandbox, "g"));
        let sizes = pids.map(|pid| kilobytes(pid, "Private_"));
        sandbox.holm(&["kill", "g"]).ok();
        sizes.iter().sum::<u64>()
    });
    sizes.sort_unstable();
    assert!(sizes[4] <= 102, "monitor and init together: {sizes:?} KiB");
}

/// Both while it receives messages, and at its end with messages still unread.
fn no_message_blocks_a_monitor(sandbox: &mut Sandbox) {
    let probe = format!("{}:/probe:ro", sandbox.probe_directory().display());
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

/// All monitors execute one program in memory, as the host's root: who could write it would be root
/// there (CVE-2019-5736).
fn nobody_can_write_a_monitors_program(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let monitor = pid(&status(sandbox, "g"), "monitor_pid");
    let program = std::fs::File::open(format!("/proc/{monitor}/exe")).expect("its program");
    let seals = fcntl_get_seals(&program).expect("a file in memory");
    let wanted = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    assert!(seals.contains(wanted), "{seals:?}");
    sandbox.holm(&["kill", "g"]).ok();
}
