//! What a Holm root has on the host and in its directories, before and after.

use crate::sandbox::Sandbox;

/// What the root has on the host, and the entries of its directories.
pub fn traces(sandbox: &Sandbox) -> Vec<String> {
    let instance = sandbox.instance();
    let mut all = sandbox.host_resources(instance);
    for directory in ["guests", "bases", "ids", "tmp"] {
        for entry in
            std::fs::read_dir(sandbox.root().join(directory)).into_iter().flatten().flatten()
        {
            all.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
        }
    }
    all.sort();
    all
}

/// The same when the interfaces of ended guests are gone: the end of a guest does not wait for
/// that.
pub fn settled(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    sandbox.poll_until_limit(|| {
        all = traces(sandbox);
        (!all.iter().any(|item| item.starts_with("link "))).then_some(())
    });
    all
}

/// Waits until the host and the root are as they were `before`; calls `again` before each look.
#[track_caller]
pub fn wait_until_as_before(sandbox: &Sandbox, before: &[String], what: &str, again: impl Fn()) {
    let mut now = Vec::new();
    sandbox.poll_until_limit(|| {
        again();
        now = traces(sandbox);
        (now == before).then_some(())
    });
    assert_eq!(now, before, "{what}");
}

/// Does `work`, then waits until the host and the root are as they were before it.
#[track_caller]
pub fn changes_nothing(sandbox: &mut Sandbox, work: impl FnOnce(&mut Sandbox)) {
    sandbox.holm(&["ls"]).ok();
    let before = settled(sandbox);
    work(sandbox);
    wait_until_as_before(sandbox, &before, "not as before", || ());
}
