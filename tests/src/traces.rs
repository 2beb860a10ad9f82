//! What a Holm root has on the host and in its directories, before and after.

use crate::sandbox::Sandbox;

/// What the root has on the host and in its folders: names of guests, bases, ids and what is in the making.
pub fn traces(sandbox: &Sandbox) -> Vec<String> {
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
pub fn settled(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    sandbox.look_for(|| {
        all = traces(sandbox);
        (!all.iter().any(|item| item.starts_with("link "))).then_some(())
    });
    all
}

/// Waits until the host and the root are as they were `before`, and does `again` before each look.
#[track_caller]
pub fn becomes(sandbox: &Sandbox, before: &[String], what: &str, again: impl Fn()) {
    let mut now = Vec::new();
    sandbox.look_for(|| {
        again();
        now = traces(sandbox);
        (now == before).then_some(())
    });
    assert_eq!(now, before, "{what}");
}

/// Does `work`, and waits until the host and the root are again as they were before.
#[track_caller]
pub fn changes_nothing(sandbox: &mut Sandbox, work: impl FnOnce(&mut Sandbox)) {
    sandbox.holm(&["ls"]).ok();
    let before = settled(sandbox);
    work(sandbox);
    becomes(sandbox, &before, "not as before", || ());
}
