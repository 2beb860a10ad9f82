//! What tells a guest from the others of its base.

use std::fs;

use crate::guest::{IDLE, exec, idle, remove};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(guests_of_a_base_without_a_machine_id_differ).bases(&["busybox"]),
    test!(guests_of_a_base_with_a_machine_id_differ),
];

/// The machine id in a running guest.
#[track_caller]
fn machine_id(sandbox: &Sandbox, name: &str) -> String {
    let read = exec(sandbox, name, "read id </etc/machine-id; echo $id").ok().stdout;
    let id = read.trim_end().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}: {id}");
    id
}

/// Two guests differ, each stays the same, and what an ephemeral guest has is nobody else's.
fn guests_of_a_base_without_a_machine_id_differ(sandbox: &mut Sandbox) {
    for name in ["one", "two"] {
        idle(sandbox, "launch", name);
    }
    let ids = ["one", "two"].map(|name| machine_id(sandbox, name));
    assert_ne!(ids[0], ids[1]);
    sandbox.holm(&["restart", "one"]).ok();
    assert_eq!(machine_id(sandbox, "one"), ids[0], "it stays the same");
    // Removed and made again it is another machine.
    remove(sandbox, "one");
    sandbox.holm(&[&["launch", "one"], &IDLE[..]].concat()).ok();
    assert!(!ids.contains(&machine_id(sandbox, "one")));
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}

/// A machine that was copied as it was: its id must not become that of every guest.
fn guests_of_a_base_with_a_machine_id_differ(sandbox: &mut Sandbox) {
    const OF_THE_BASE: &str = "0123456789abcdef0123456789abcdef";
    let source = system(sandbox, |dir| {
        // Holm passes the id to an init of systemd's kind by its environment too.
        fake_systemd(dir, "#!/bin/sh\necho $container_uuid >/uuid\nexec sleep 100000\n");
        fs::write(dir.join("etc/machine-id"), format!("{OF_THE_BASE}\n")).expect("a file");
    });
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let mut ids = vec![OF_THE_BASE.to_owned()];
    for (name, init) in [("a", "system"), ("b", "system"), ("c", "minimal"), ("d", "minimal")] {
        let command: &[&str] =
            if init == "minimal" { &["--", "/bin/sleep", "100000"] } else { &[] };
        let launch = ["launch", name, "--base", "own", "--net", "none", "--init", init];
        sandbox.holm(&[&launch, command].concat()).ok();
        let id = machine_id(sandbox, name);
        assert!(!ids.contains(&id), "{name}: {id} in {ids:?}");
        if init == "system" {
            let uuid = sandbox.wait_for("init has written it down", || {
                let read = exec(sandbox, name, "read uuid </uuid && echo $uuid").stdout;
                (!read.is_empty()).then_some(read)
            });
            assert_eq!(uuid.trim_end().replace('-', ""), id, "{name}");
        }
        ids.push(id);
    }
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}
