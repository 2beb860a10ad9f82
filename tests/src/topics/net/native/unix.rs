//! Unix sockets of native guests, whose abstract names are those of the host.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;

use super::{Host, ONE, TWO};
use crate::process::Daemon;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(abstract_sockets_are_apart).bases(&["busybox"])];

/// Ends the test where no BPF program is asked about Unix sockets.
fn want_lsm() {
    let all = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if !all.split(',').any(|lsm| lsm == "bpf") {
        skip("this kernel does not have BPF as an LSM, by which alone they can be");
    }
}

fn abstract_sockets_are_apart(sandbox: &mut Sandbox) {
    want_lsm();
    let host = Host::new(sandbox);
    for (name, addresses) in [("one", ONE), ("two", TWO)] {
        host.launch(name, addresses, &["/probe/holm-probe", "unix-serve", name]).ok();
        host.wait_for_servers(name);
    }
    let mut serve = Command::new(host.probe.join("holm-probe"));
    let _server = host.topology.host.with(|| Daemon::new(serve.args(["unix-serve", "outside"])));
    let from_host = || {
        let mut ask = Command::new(host.probe.join("holm-probe"));
        let asked = host.topology.host.with(|| sandbox.run(ask.args(["unix-ask", "outside"])));
        asked.ok().stdout
    };
    let answers = "outside: outside outside outside\n";
    sandbox.wait_for("the host's own server", || (from_host() == answers).then_some(()));
    let one = SocketAddr::from_abstract_name("one").unwrap();
    host.topology.host.with(|| UnixStream::connect_addr(&one)).expect("the host is not kept out");
    let ask = |name: &str| {
        host.holm(&["exec", name, "--", "/probe/holm-probe", "unix-ask", "one", "two", "outside"])
            .ok()
            .stdout
    };
    let refused = "ConnectionRefused ConnectionRefused ConnectionRefused";
    assert_eq!(ask("one"), format!("one: one one one\ntwo: {refused}\noutside: {refused}\n"));
    assert_eq!(ask("two"), format!("one: {refused}\ntwo: two two two\noutside: {refused}\n"));
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}
