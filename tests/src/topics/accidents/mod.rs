//! Bad input and accidents: a clear error, nothing left behind, nothing lost.

mod adopted;
mod bases;
mod host;
mod init;
mod killed;
mod killed_end;
mod late;
mod names;
mod places;
mod races;
mod reuse;
mod room;
mod settings;
mod upgrade;

use std::path::Path;

use serde_json::Value;

use crate::command::Outcome;
use crate::sandbox::Sandbox;
use crate::test::Test;

/// All tests of bad input and accidents.
pub fn tests() -> Vec<Test> {
    [
        names::TESTS,
        races::TESTS,
        init::TESTS,
        settings::TESTS,
        room::TESTS,
        host::TESTS,
        places::TESTS,
        bases::TESTS,
        upgrade::TESTS,
        reuse::TESTS,
        adopted::TESTS,
        killed::TESTS,
        killed_end::TESTS,
        late::TESTS,
    ]
    .concat()
}

/// Settings of a guest that does nothing until it is stopped.
const IDLE: [&str; 7] = ["--base", "busybox", "--net", "none", "--", "sleep", "100000"];

/// Makes or launches a guest that does nothing.
fn idle(sandbox: &Sandbox, verb: &str, name: &str) {
    sandbox.holm(&[&[verb, name][..], &IDLE].concat()).ok();
}

/// What `holm status --json` says.
fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.holm(&["status", name, "--json"]).ok().json()
}

/// A process id on the host, as `status` names it.
fn pid(status: &Value, whose: &str) -> i32 {
    let pid = status["state"][whose].as_i64().unwrap_or_else(|| panic!("no {whose} in {status}"));
    i32::try_from(pid).expect("a process id")
}

/// Runs a shell script in a running guest.
fn exec(sandbox: &Sandbox, name: &str, script: &str) -> Outcome {
    sandbox.holm(&["exec", name, "sh", "-c", script])
}

/// What the root has on the host and in its folders: names of guests, bases, ids and what is in the making.
fn traces(sandbox: &Sandbox) -> Vec<String> {
    let instance = sandbox.instance();
    let mut all = sandbox.belongings(instance);
    for folder in ["guests", "bases", "ids", "tmp"] {
        for entry in std::fs::read_dir(sandbox.root().join(folder)).into_iter().flatten().flatten()
        {
            all.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
        }
    }
    all.sort();
    all
}

/// The same once the links of guests that have ended are gone: a guest's end does not wait for that.
fn settled(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    sandbox.look_for(|| {
        all = traces(sandbox);
        (!all.iter().any(|item| item.starts_with("link "))).then_some(())
    });
    all
}

/// Does `work`, and waits until the host and the root are again as they were before.
#[track_caller]
fn changes_nothing(sandbox: &mut Sandbox, work: impl FnOnce(&mut Sandbox)) {
    sandbox.holm(&["ls"]).ok();
    let before = settled(sandbox);
    work(sandbox);
    becomes(sandbox, &before, "not as before", || ());
}

/// Waits until the host and the root are as they were `before`, and does `again` before each look.
#[track_caller]
fn becomes(sandbox: &Sandbox, before: &[String], what: &str, again: impl Fn()) {
    let mut now = Vec::new();
    sandbox.look_for(|| {
        again();
        now = traces(sandbox);
        (now == before).then_some(())
    });
    assert_eq!(now, before, "{what}");
}

/// A folder that can be imported: a shell, and the programs that `fill` puts beside it.
fn system(sandbox: &Sandbox, fill: impl FnOnce(&Path)) -> String {
    let dir = sandbox.root().join("source");
    let _ = std::fs::remove_dir_all(&dir);
    for folder in ["bin", "sbin", "etc"] {
        std::fs::create_dir_all(dir.join(folder)).expect("a folder in the sandbox");
    }
    std::fs::copy("/bin/busybox", dir.join("bin/busybox")).expect("the host has busybox");
    for name in ["sh", "sleep", "mkdir", "mount"] {
        std::os::unix::fs::symlink("busybox", dir.join("bin").join(name)).expect("a link");
    }
    fill(&dir);
    dir.to_string_lossy().into_owned()
}

/// Puts a script where Holm takes it for systemd: an init that would say when the guest is up.
fn would_be_systemd(dir: &Path, script: &str) {
    program(&dir.join("sbin/systemd"), script);
    std::os::unix::fs::symlink("systemd", dir.join("sbin/init")).expect("a link");
}

/// Writes a file that may be executed.
fn program(path: &Path, bytes: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, bytes).expect("a program");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
}
