//! `net.cap` alone, on an uplink with several queues, where packets have times to leave at.

use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::shaping::{growth, sink};
use super::topology::Host;
use crate::command::Running;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(caps_alone_share_no_lock).bases(&["busybox"]),
    test!(caps_without_departure_times).bases(&["busybox"]),
];

/// Four queues lead to 198.51.100.1.
fn host(sandbox: &Sandbox) -> Host<'_> {
    let uplink = "interface = \"up1\"\nrate = \"1G\"\n";
    fs::write(sandbox.root().join("uplink.toml"), uplink).unwrap();
    let host = Host::new(sandbox);
    let (inside, outside) = (&host.topology.host, &host.topology.outside);
    inside.sh(&format!(
        "ip link add up1 numtxqueues 4 numrxqueues 4 type veth \
           peer name out1 numtxqueues 4 numrxqueues 4 netns {}
        ip addr add 198.51.100.2/24 dev up1; ip addr add 198.51.100.10/32 dev up1
        ip link set up1 up",
        outside.pid()
    ));
    outside.sh("ip addr add 198.51.100.1/24 dev out1; ip link set out1 up");
    host
}

impl Host<'_> {
    /// The uplink's qdiscs, classes and filters.
    fn up1(&self) -> String {
        self.topology.host.sh("tc qdisc show dev up1; tc class show dev up1
            tc filter show dev up1 egress; tc filter show dev up1 ingress")
    }

    fn needs_fq(&self) {
        let script = "ip link add fq0 type veth; tc qdisc add dev fq0 root fq";
        if !self.topology.outside.try_sh(script).status.success() {
            skip("this kernel has no fq (CONFIG_NET_SCH_FQ)");
        }
    }
}

const NATIVE: [&str; 2] = ["net.mode=native", "net.address=198.51.100.10"];

/// Looks how fast a guest sends that may send so many Mbit/s.
#[track_caller]
fn sends_at_most(count: &Arc<AtomicU32>, megabits: f64) {
    let cap = megabits * 1e6 / 8.0;
    let (bytes, seconds) = growth(|| f64::from(count.load(Ordering::Relaxed)), 3000);
    // What waited before, for a fifth of a second at most.
    let most = cap * (seconds * 1.1 + 0.2) + 65536.0;
    assert!(bytes > 0.1 * cap && bytes < most, "{bytes} of at most {most} bytes");
}

/// Looks that what a guest sends at once waits instead of being dropped: 20 datagrams, a sixth of a
/// second of 1 Mbit/s.
fn waits(host: &Host<'_>, name: &str) {
    let socket = host.topology.outside.with(|| UdpSocket::bind("198.51.100.1:11").unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    host.sandbox.wait_for("all of them, and later", || {
        let mut command = host.sandbox.command();
        command.args(["exec", name, "--", "/probe/holm-probe", "burst", "198.51.100.1:11", "20"]);
        let sender = host.topology.host.with(|| Running::new(&mut command, b""));
        let mut times = Vec::new();
        while socket.recv(&mut [0; 2000]).is_ok() {
            times.push(Instant::now());
        }
        sender.finish(host.sandbox.limit());
        let took = times.last()?.duration_since(times[0]);
        (times.len() == 20 && took > Duration::from_millis(100)).then_some(())
    });
}

fn caps_alone_share_no_lock(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    host.needs_fq();
    let untouched = host.up1();
    let [to_private, to_native] =
        [9, 10].map(|port| sink(&host.topology.outside, &format!("198.51.100.1:{port}")));
    host.launch("private", &["net.cap=4M"]).ok();
    host.launch("native", &[&NATIVE[..], &["net.cap=2M"]].concat()).ok();
    host.launch("quiet", &["net.cap=1M"]).ok();
    let made = host.up1();
    assert!(made.contains("qdisc mq 486e: root"), "{made}");
    assert_eq!(made.matches("qdisc fq ").count(), 4, "{made}");
    host.holm(&["status", "native"]).ok().has("at most 2M of up1");
    let mut floods = vec![host.flood("private", "198.51.100.1:9")];
    floods.push(host.flood("native", "198.51.100.1:10"));
    sandbox.wait_for("they send", || {
        let both = [&to_private, &to_native];
        both.iter().all(|it| it.load(Ordering::Relaxed) > 65536).then_some(())
    });
    sends_at_most(&to_private, 4.0);
    sends_at_most(&to_native, 2.0);
    // At once.
    host.holm(&["set", "native", "net.cap=1M"]).ok();
    sends_at_most(&to_native, 1.0);
    waits(&host, "quiet");
    host.holm(&["rm", "-f", "quiet"]).ok();

    // Somebody removes what Holm has made.
    for script in ["tc qdisc del dev up1 root", "tc qdisc del dev up1 clsact"] {
        host.topology.host.sh(script);
        assert!(host.holm(&["ls"]).ok().stderr.contains("was restored"), "{script}");
        assert!(!host.holm(&["ls"]).ok().stderr.contains("restored"), "{script}");
        let found = host.up1();
        assert!(found.contains("qdisc mq 486e: root") && found.contains("departure"), "{found}");
    }
    sends_at_most(&to_native, 1.0);

    // A share wants HTB, which the others get too.
    host.holm(&["set", "private", "net.share=50"]).ok();
    let found = host.up1();
    for part in ["qdisc htb 486d: root", "ceil 4Mbit", "ceil 1Mbit"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("clsact"), "{found}");
    sends_at_most(&to_native, 1.0);
    host.holm(&["rm", "-f", "native", "private"]).ok();
    for flood in floods {
        flood.finish(sandbox.limit());
    }
    assert_eq!(host.up1(), untouched);
    host.launch("private", &["net.cap=4M"]).ok();
    host.topology.host.sh("tc qdisc del dev up1 root");
    host.holm(&["rm", "-f", "private"]).ok();
    assert_eq!(host.up1(), untouched, "nobody has restored it");

    // What another program adds beside it stays.
    host.launch("private", &["net.cap=4M"]).ok();
    let add = "tc filter add dev up1 ingress pref 1 protocol all u32 match u32 0 0 flowid 1:1";
    host.topology.host.sh(add);
    host.holm(&["rm", "-f", "private"]).ok();
    let found = host.up1();
    assert!(found.contains("u32") && !found.contains("departure"), "{found}");
    host.topology.host.sh("tc qdisc del dev up1 clsact");
    assert_eq!(host.up1(), untouched);

    // What a killed command leaves, whoever comes next.
    let set = ["set", "private", "net.cap=4M"];
    for done in [&set[..], &["rm", "-f", "private"]] {
        host.launch("private", &[]).ok();
        host.topology.kill_at(sandbox, "departures-qdiscs", &set);
        host.holm(done).ok();
        host.holm(&["rm", "-f", "--all"]).ok();
        assert_eq!(host.up1(), untouched, "{done:?}");
    }
}

/// Where they are not possible, or another program has classifiers, HTB has caps too.
fn caps_without_departure_times(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    for (qdisc, filter) in [("ingress", "ingress"), ("clsact", "egress")] {
        host.topology.host.sh(&format!(
            "tc qdisc add dev up1 {qdisc}
            tc filter add dev up1 {filter} pref 5 protocol ip u32 match u32 0 0 flowid 1:1"
        ));
        let theirs = host.up1();
        host.launch("one", &["net.cap=4M"]).ok();
        let found = host.up1();
        assert!(found.contains("qdisc htb 486d: root") && found.contains("ceil 4Mbit"), "{found}");
        assert!(!found.contains("departure"), "{found}");
        host.holm(&["rm", "-f", "one"]).ok();
        assert_eq!(host.up1(), theirs);
        host.topology.host.sh(&format!("tc qdisc del dev up1 {qdisc}"));
    }
}
