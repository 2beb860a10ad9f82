//! How fast guests send through the uplink, measured there while all of them have more to send than
//! they may: what is compared are bytes of the same time, so that a busy machine changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::topology::{Host, TestNetns};
use crate::command::{Outcome, Running};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    // Where others run too the guests have no time to fill the uplink.
    test!(what_is_reserved_shared_and_capped).bases(&["busybox"]).alone(),
    test!(what_a_private_guest_receives_is_capped).bases(&["busybox"]),
    test!(what_a_native_guest_receives_is_capped).bases(&["busybox"]),
    test!(a_killed_change_is_repaired).bases(&["busybox"]),
    test!(a_refused_rate_changes_nothing).bases(&["busybox"]),
    test!(a_removed_qdisc_is_restored).bases(&["busybox"]),
];

const UPLINK: u32 = 16;

/// Where guests send to.
const SINK: &str = "192.0.2.1:9";

/// Class of the host and of guests without a rate.
const HOST: u32 = 2;

/// A host with an uplink of as many Mbit/s as an emulated machine can fill too.
fn host(sandbox: &Sandbox) -> Host<'_> {
    fs::write(sandbox.root().join("uplink.toml"), format!("rate = \"{UPLINK}M\"\n")).unwrap();
    Host::new(sandbox)
}

impl Host<'_> {
    pub(super) fn launch(&self, name: &str, settings: &[&str]) -> Outcome {
        let mount = format!("mounts+={}:/probe:ro", self.sandbox.probe_directory().display());
        self.run(name, &[&[mount.as_str()], settings].concat(), &["sleep", "1000"])
    }

    /// A guest sends as much as it can to a [`sink`], for two minutes at most.
    pub(super) fn flood(&self, name: &str, to: &str) -> Running {
        let mut command = self.sandbox.command();
        command.args(["exec", name, "--", "/probe/holm-probe", "flood", to]);
        self.topology.host.with(|| Running::new(&mut command, b""))
    }

    /// The uplink's qdiscs and their classes, but for the queues of single connections.
    fn qdisc(&self) -> String {
        let script = "tc qdisc show dev up0; tc class show dev up0 | grep -v 'class fq_codel' || :";
        self.topology.host.sh(script)
    }

    /// The number of a guest's class.
    fn class(&self, name: &str) -> u32 {
        let ids = fs::read_dir(self.sandbox.root().join("ids")).unwrap().flatten();
        let named = |path: &Path| fs::read_link(path).is_ok_and(|guest| guest.ends_with(name));
        let context = ids.map(|id| id.path()).find(|path| named(path)).expect("its context id");
        let context: u32 = context.file_name().unwrap().to_str().unwrap().parse().unwrap();
        self.sandbox.instance().unwrap() << 10 | context
    }

    /// What each class has sent in a time in which the link was full. A machine on which that never
    /// happens, because too much else runs, tells nothing of shares.
    fn sent_when_full(&self, during: Duration) -> BTreeMap<u32, f64> {
        let full = self.sandbox.poll_until_limit(|| {
            let (sent, took) = self.sent(during);
            let all = sent.iter().filter(|(class, _)| **class > 1).map(|(_, bytes)| bytes);
            let link = f64::from(UPLINK) * 1e6 / 8.0 * took.as_secs_f64();
            (all.sum::<f64>() > 0.9 * link).then_some(sent)
        });
        full.unwrap_or_else(|| skip("this machine cannot fill the link"))
    }

    /// The bytes that each class has sent, and how long it took at most.
    fn sent(&self, during: Duration) -> (BTreeMap<u32, f64>, Duration) {
        let begin = Instant::now();
        let before = classes(&self.topology.host);
        thread::sleep(during);
        let after = classes(&self.topology.host);
        let sent = after.iter().map(|(class, bytes)| (*class, bytes - before[class]));
        (sent.collect(), begin.elapsed())
    }
}

/// The bytes that each class of the uplink has sent so far.
fn classes(host: &TestNetns) -> BTreeMap<u32, f64> {
    let mut all = BTreeMap::new();
    let text = host.sh("tc -s class show dev up0");
    let mut class = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["class", "htb", id, ..] => {
                let (major, minor) = id.split_once(':').unwrap();
                assert_eq!(major, "486d", "{text}");
                class = Some(u32::from_str_radix(minor, 16).unwrap());
            }
            ["Sent", bytes, ..] => {
                all.extend(class.take().map(|class| (class, bytes.parse::<f64>().unwrap())));
            }
            _ => {}
        }
    }
    all
}

/// Takes what all connections send, and counts its bytes.
pub(super) fn sink(outside: &TestNetns, address: &str) -> Arc<AtomicU32> {
    let listener = outside.with(|| TcpListener::bind(address).unwrap());
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    // It ends with the test process.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let count = Arc::clone(&counted);
            thread::spawn(move || {
                let mut bytes = vec![0; 65536];
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    count.fetch_add(u32::try_from(read).unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    count
}

#[track_caller]
fn about(ratio: f64, expected: f64, what: &str) {
    assert!((ratio / expected - 1.0).abs() < 0.2, "{what}: {ratio:.3} instead of {expected}");
}

fn what_is_reserved_shared_and_capped(sandbox: &mut Sandbox) {
    const DURING: Duration = Duration::from_secs(4);
    let host = host(sandbox);
    sink(&host.topology.outside, SINK);
    // Two have one address. The shares would come out equal if packets stayed as long as TCP makes
    // them.
    let native = ["net.mode=native", "net.address=192.0.2.10", "net.share-address=true"];
    host.launch("native", &[&native[..], &["net.share=20"]].concat()).ok();
    host.launch("private", &["net.share=60"]).ok();
    host.launch("reserved", &[&native[..], &["net.reserve=8M"]].concat()).ok();
    host.launch("plain", &[]).ok();
    host.holm(&["status", "reserved"]).ok().has("8M reserved of up0, 16M");
    let of = |name| host.class(name);
    let (native, private, reserved) = (of("native"), of("private"), of("reserved"));
    let mut floods: Vec<_> =
        ["native", "private", "reserved"].map(|name| host.flood(name, SINK)).into();
    thread::sleep(Duration::from_secs(1));
    let sent = host.sent_when_full(DURING);
    let all = sent[&native] + sent[&private] + sent[&reserved];
    // How exactly, `holm-bench rates` says; equal ones would be 1.
    let shares = sent[&private] / sent[&native];
    assert!((1.8..6.0).contains(&shares), "shares of 3 to 1: {shares}");
    about(sent[&reserved] / all, 0.5, "what is reserved");
    assert_eq!(host.topology.host.sh("tc qdisc show dev up0 root | grep -c htb").trim(), "1");

    // At once, and with what it leaves to others.
    host.holm(&["set", "private", "net.cap=2M"]).ok();
    let found = host.holm(&["status", "private", "--json"]).ok().json();
    assert_eq!(found["network"]["rates"]["cap_bits"], 2_000_000, "{found}");
    let (sent, took) = host.sent(DURING);
    let most = 2e6 / 8.0 * took.as_secs_f64() * 1.1 + 30_000.0;
    assert!(sent[&private] < most, "{} of at most {most} bytes", sent[&private]);
    assert!(sent[&native] > sent[&private], "{sent:?}");
    let most = 8e6 / 8.0 * took.as_secs_f64() * 1.1 + 30_000.0;
    assert!(sent[&reserved] < most, "a reservation alone is a cap: {sent:?}");

    // A flushed ruleset marks no packets, until Holm looks at it.
    host.topology.host.sh("nft flush ruleset");
    host.holm(&["ls"]).ok();
    let map = format!("nft list map inet holm-{} classes", sandbox.instance().unwrap());
    assert!(host.topology.host.sh(&map).contains(" : 486d:"));

    // Without a class it is as the host.
    let changed = host.holm(&["unset", "private", "net.cap", "net.share"]);
    changed.ok();
    floods.push(host.flood("plain", SINK));
    let (sent, _) = host.sent(DURING);
    assert!(!sent.contains_key(&private) && sent[&HOST] > 0.0, "{sent:?}");

    for name in ["native", "private", "reserved", "plain"] {
        host.holm(&["rm", "-f", name]).ok();
    }
    for flood in floods {
        flood.finish(sandbox.limit());
    }
    let left = host.topology.host.sh("tc qdisc show dev up0 root");
    assert!(!left.contains("htb"), "{left}");
}

fn a_removed_qdisc_is_restored(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    host.launch("one", &["net.cap=4M", "net.share=100"]).ok();
    let told = |args: &[&str]| {
        let printed = host.holm(args).ok();
        [printed.stdout, printed.stderr].concat()
    };
    for args in [&["ls"][..], &["status", "one"]] {
        host.topology.host.sh("tc qdisc del dev up0 root");
        let elsewhere = host.topology.outside.with(|| host.sandbox.holm(&["ls"])).ok();
        assert!(!elsewhere.stderr.contains("qdisc"), "{elsewhere}");
        assert!(told(args).contains("had been removed and was restored"), "{args:?}");
        assert!(host.qdisc().contains("ceil 4Mbit"), "{}", host.qdisc());
        assert!(!told(args).contains("qdisc"), "{args:?}");
    }
    host.topology.host.sh("tc qdisc replace dev up0 root handle 1: pfifo");
    let refused = told(&["ls"]);
    assert!(refused.contains("the rate is not in effect: "), "{refused}");
    host.topology.host.sh("tc qdisc del dev up0 root");
    host.holm(&["rm", "-f", "one"]).ok();
}

/// A client that sends to a guest as much as it can until the guest is gone.
struct Flood {
    served: Running,
    sender: JoinHandle<()>,
}

impl Flood {
    /// Sends to a server that it starts in the guest `slow`.
    fn begin(host: &Host<'_>, client: &TestNetns, address: &str) -> Self {
        let serve = ["exec", "slow", "--", "sh", "-c", "exec nc -l -p 9 >/dev/null"];
        let mut command = host.sandbox.command();
        let served = host.topology.host.with(|| Running::new(command.args(serve), b""));
        let to = format!("{address}:9");
        let connect = || client.with(|| TcpStream::connect(&to)).ok();
        let mut stream = host.sandbox.wait_for("its server", connect);
        // Nobody answers when the guest is gone.
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let bytes = vec![0; 65536];
        let sender = thread::spawn(move || while stream.write_all(&bytes).is_ok() {});
        thread::sleep(Duration::from_millis(500));
        Self { served, sender }
    }

    /// Removes the guest.
    fn end(self, host: &Host<'_>) {
        host.holm(&["rm", "-f", "slow"]).ok();
        self.served.finish(host.sandbox.limit());
        self.sender.join().unwrap();
    }
}

/// By how much a number of bytes grows in some milliseconds, and how many seconds those were.
pub(super) fn growth(of: impl Fn() -> f64, milliseconds: u64) -> (f64, f64) {
    let (begin, before) = (Instant::now(), of());
    thread::sleep(Duration::from_millis(milliseconds));
    let after = of();
    (after - before, begin.elapsed().as_secs_f64())
}

/// Bytes in a second of 8 Mbit/s.
const CAP: f64 = 1e6;

fn what_a_private_guest_receives_is_capped(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    host.launch("slow", &["net.cap=8M"]).ok();
    let found = host.holm(&["status", "slow", "--json"]).ok().json();
    let interface = found["network"]["host_interface"].as_str().unwrap().to_owned();
    let received = || {
        let text = host.topology.host.sh(&format!("tc -s qdisc show dev {interface}"));
        let bytes = text.split("Sent ").nth(1).unwrap().split(' ').next().unwrap();
        bytes.parse::<f64>().unwrap()
    };
    let address = found["addresses"][0].as_str().unwrap();
    let flood = Flood::begin(&host, &host.topology.host, address);
    let (bytes, seconds) = growth(received, 1000);
    let most = CAP * seconds * 1.1 + 30_000.0;
    assert!(bytes > 0.0 && bytes < most, "{bytes} of at most {most}");
    // What cleans up after others takes its bound for no uplink.
    let instance = u8::try_from(sandbox.instance().unwrap()).unwrap();
    host.topology.host.with(|| holm::net::detach_unrecorded(instance, 1000)).unwrap();
    let is_bounded =
        || host.topology.host.sh(&format!("tc qdisc show dev {interface}")).contains("tbf");
    assert!(is_bounded());
    host.holm(&["unset", "slow", "net.cap"]).ok();
    assert!(!is_bounded());
    flood.end(&host);
}

fn what_a_native_guest_receives_is_capped(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    host.launch("slow", &["net.mode=native", "net.address=192.0.2.10", "net.cap=8M"]).ok();
    let traffic = || host.holm(&["status", "slow", "--json"]).ok().json()["traffic"].clone();
    let received = || traffic()["received_bytes"].as_f64().unwrap();
    let dropped = || traffic()["dropped_packets"]["over_cap"].as_u64().unwrap();
    let flood = Flood::begin(&host, &host.topology.outside, "192.0.2.10");
    let (bytes, seconds) = growth(received, 1000);
    // What a quarter of a second allows, and a packet as large as packets get.
    let most = CAP * (seconds + 0.25) + 65536.0;
    assert!(bytes > most / 4.0 && bytes < most, "{bytes} of at most {most}");
    assert!(dropped() > 0);
    host.holm(&["unset", "slow", "net.cap"]).ok();
    let before = dropped();
    // The sender has learnt to be slow, and tries more from time to time.
    sandbox.wait_for("it receives faster", || {
        let (bytes, seconds) = growth(received, 200);
        (bytes > 2.0 * CAP * seconds).then_some(())
    });
    assert_eq!(dropped(), before);
    host.holm(&["set", "slow", "net.cap=8M"]).ok();
    sandbox.wait_for("it is bounded again", || (dropped() > before).then_some(()));
    flood.end(&host);
}

fn a_killed_change_is_repaired(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    let qdisc = || host.qdisc();
    let untouched = qdisc();
    let set = ["set", "one", "net.cap=4M", "net.share=100"];
    for step in ["network-recorded", "reshape-class", "network-changed"] {
        host.launch("one", &[]).ok();
        host.topology.kill_at(sandbox, step, &set);
        host.holm(&["rm", "-f", "one"]).ok();
        assert_eq!(qdisc(), untouched, "{step}");
    }
    for step in ["network-recorded", "reshape-class", "network-changed"] {
        host.launch("one", &[]).ok();
        host.topology.kill_at(sandbox, step, &set);
        host.holm(&set).ok();
        assert!(qdisc().contains("ceil 4Mbit"), "{step}: {}", qdisc());
        host.holm(&["rm", "-f", "one"]).ok();
    }
}

fn a_refused_rate_changes_nothing(sandbox: &mut Sandbox) {
    let host = host(sandbox);
    let qdisc = || host.qdisc();
    let untouched = qdisc();
    host.launch("greedy", &["net.reserve=16M"])
        .refused(&["800K are reserved for the host", "leaves 15200K"]);
    assert_eq!(qdisc(), untouched);

    host.launch("one", &["net.reserve=5M"]).ok();
    host.launch("two", &["net.reserve=11M"]).refused(&["5M for other guests, which leaves 10200K"]);
    host.launch("two", &["net.reserve=10M"]).ok();
    let before = qdisc();
    host.holm(&["set", "two", "net.reserve=11M"]).refused(&["which leaves 10200K"]);
    assert_eq!(qdisc(), before);
    for name in ["one", "two"] {
        host.holm(&["rm", "-f", name]).ok();
    }
    assert_eq!(qdisc(), untouched);

    // Another program's qdisc is left alone.
    host.topology.host.sh("tc qdisc add dev up0 root handle 1: pfifo");
    let theirs = qdisc();
    host.launch("late", &["net.cap=1M"]).refused(&["up0 has a root qdisc (pfifo)"]);
    assert_eq!(qdisc(), theirs);

    // Nothing says what the link has.
    for (text, why) in [
        ("", "the rate of up0 is not known"),
        ("rate = \"fast\"", "rate: \"fast\" is not a rate"),
        ("interface = \"up9\"\nrate = \"1M\"", "this host has no interface up9"),
        ("rates = \"1M\"", "unknown field `rates`"),
    ] {
        fs::write(sandbox.root().join("uplink.toml"), text).unwrap();
        host.launch("late", &["net.cap=1M"]).refused(&[why]);
    }
}
