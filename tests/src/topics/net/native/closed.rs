//! Connections of native guests that are closed, whose ports the kernel keeps for a minute.

use super::{Host, ONE, TWO};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(closed_connections_keep_no_port_of_others).bases(&["busybox"])];

/// One guest has closed as many connections as there are ports to choose from.
fn closed_connections_keep_no_port_of_others(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.serve("two", TWO);
    host.topology.host.sh("sysctl -qw net.ipv4.ip_local_port_range='40000 40100'");
    for to in ["192.0.2.20:7", "[2001:db8::20]:8"] {
        let open = |guest, count| {
            let probe = ["exec", guest, "--", "/probe/holm-probe", "close-first", to, count];
            host.holm(&probe).ok().stdout.trim().to_owned()
        };
        // Now and then the kernel takes a port of a closed connection again, but not fifty.
        for count in ["300", "50"] {
            let tried = open("one", count);
            assert!(tried.ends_with(" AddrNotAvailable"), "{to}: {tried}");
        }
        // The server's own guest, to itself; and the host.
        assert_eq!(open("two", "50"), "50", "{to}");
        let by_host = host.probe_from(false, &["close-first", to, "50"]);
        assert_eq!(by_host.ok().stdout, "50\n", "{to}");
    }
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}
