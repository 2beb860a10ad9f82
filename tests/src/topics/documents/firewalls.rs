//! The rules that network.md shows for Docker's firewall.

use std::process::Command;

use super::{DOCUMENTS, blocks};
use crate::sandbox::Sandbox;

/// What Docker does to forwarded packets.
const DOCKER: &str =
    "iptables -N DOCKER-USER; iptables -P FORWARD DROP; iptables -A FORWARD -j DOCKER-USER";

pub fn the_rules_for_docker_let_guests_through(sandbox: &mut Sandbox) {
    let (_, text) = DOCUMENTS.iter().find(|(name, _)| *name == "network.md").expect("it is there");
    let mut lines = blocks(text, "").into_iter().filter(|block| block.starts_with("iptables "));
    let shown = lines.next().expect("the rules");
    let script = format!(
        "set -e; {DOCKER}
        \"$HOLM\" doctor other-filters
        {shown}
        \"$HOLM\" doctor other-filters"
    );
    let mut namespace = Command::new("unshare");
    namespace.args(["--net", "sh", "-c", &script]).env("HOLM_ROOT", sandbox.root());
    namespace.env("HOLM", std::path::absolute(&sandbox.options.holm).expect("a path"));
    let outcome = sandbox.run(&mut namespace).ok();
    let (before, after) = outcome.stdout.split_once("\nok ").expect("the second is ok");
    assert!(before.contains(shown) && !after.contains("degraded"), "{outcome}");
}
