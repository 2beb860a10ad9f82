//! What is counted of guests' traffic, and how it is shown.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use super::topology::{Host, PATIENCE, TestNetns};
use crate::command::Outcome;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_private_guests_traffic_is_counted).bases(&["busybox"]),
    test!(a_native_guests_traffic_is_counted).bases(&["busybox"]),
    test!(packets_of_a_private_guest_are_dropped_and_counted).bases(&["busybox"]),
    test!(stat_shows_running_guests).bases(&["busybox"]),
];

/// Bytes of what is transferred.
const SIZE: usize = 1 << 20;

impl Host<'_> {
    /// Starts a guest with a web server, which has a page of [`SIZE`] bytes.
    fn serve_page(&self, name: &str, settings: &[&str]) {
        let server = format!(
            "mkdir -p /srv && head -c {SIZE} /dev/zero >/srv/page && exec httpd -f -p 80 -h /srv"
        );
        self.run(name, settings, &["sh", "-c", &server]).ok();
    }

    fn exec(&self, name: &str, script: &str) -> Outcome {
        self.holm(&["exec", name, "--", "sh", "-c", script])
    }

    fn traffic(&self, name: &str) -> Value {
        self.holm(&["status", name, "--json"]).ok().json()["traffic"].clone()
    }
}

/// The bytes that the guest's web server sends to a client.
fn get(client: &TestNetns, address: IpAddr) -> Option<usize> {
    client.with(|| {
        let mut stream = TcpStream::connect((address, 80)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").ok()?;
        let mut page = Vec::new();
        stream.read_to_end(&mut page).ok()
    })
}

fn number(traffic: &Value, key: &str) -> u64 {
    traffic[key].as_u64().unwrap_or_else(|| panic!("{key} in {traffic}"))
}

/// Headers are a few bytes in a hundred.
fn is_about(bytes: u64, expected: usize) -> bool {
    let expected = u64::try_from(expected).unwrap();
    (expected..expected + expected / 10).contains(&bytes)
}

/// The guest serves a page once, fetches a larger one once, and talks with itself.
fn traffic_is_counted(host: &Host<'_>, client: &TestNetns, address: IpAddr) {
    host.sandbox.wait_for("the web server", || {
        let asked = host.exec("web", "wget -q -O /dev/null http://127.0.0.1/page");
        (asked.code() == 0).then_some(())
    });
    assert!(get(client, address).is_some_and(|page| page > SIZE));
    let server = host.topology.outside.with(|| TcpListener::bind("192.0.2.1:80").unwrap());
    let answer = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").unwrap();
        stream.write_all(&vec![0; 2 * SIZE]).unwrap();
    });
    host.exec(
        "web",
        "wget -q -O /dev/null http://192.0.2.1/ && wget -q -O - http://127.0.0.1/page | wc -c",
    )
    .ok()
    .has(&SIZE.to_string());
    answer.join().unwrap();
    let traffic = host.traffic("web");
    assert!(is_about(number(&traffic, "sent_bytes"), SIZE), "{traffic}");
    assert!(is_about(number(&traffic, "received_bytes"), 2 * SIZE), "{traffic}");
    for key in ["sent_packets", "received_packets"] {
        assert!((16..4000).contains(&number(&traffic, key)), "{key} in {traffic}");
    }
    assert_eq!(number(&traffic, "opened_connections"), 1, "{traffic}");
    assert_eq!(number(&traffic, "accepted_connections"), 1, "{traffic}");
    host.holm(&["status", "web"]).ok().has("1 opened, 1 accepted").has("M in ");
    host.holm(&["ls", "--columns", "name,sent,received"]).ok().has("RECEIVED").has(" 2.");
    host.holm(&["restart", "web"]).ok();
    let traffic = host.traffic("web");
    assert_eq!(number(&traffic, "opened_connections"), 0, "of this run: {traffic}");
    assert!(number(&traffic, "sent_bytes") < 10_000, "of this run: {traffic}");
    host.holm(&["rm", "--force", "web"]).ok();
}

fn a_private_guests_traffic_is_counted(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve_page("web", &[]);
    let status = host.holm(&["status", "web", "--json"]).ok().json();
    let address = status["addresses"][0].as_str().unwrap().parse().unwrap();
    traffic_is_counted(&host, &host.topology.host, address);
}

fn a_native_guests_traffic_is_counted(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve_page("web", &["net.mode=native", "net.address=192.0.2.10"]);
    traffic_is_counted(&host, &host.topology.outside, "192.0.2.10".parse().unwrap());
}

fn packets_of_a_private_guest_are_dropped_and_counted(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve_page("web", &[]);
    host.serve_page("alone", &["net.peers=false"]);
    let alone = host.holm(&["status", "alone", "--json"]).ok().json()["addresses"][0].clone();
    let dropped = |name, reason: &str| host.traffic(name)["dropped_packets"][reason].clone();
    for reason in ["foreign_source", "too_many_connections", "isolated_guest", "host_service"] {
        assert_eq!(dropped("web", reason), 0, "{reason}");
    }
    assert_eq!(dropped("web", "foreign_destination"), Value::Null);
    let failed = |script: &str| assert_ne!(host.exec("web", script).code(), 0, "{script}");
    failed("ip addr add 198.51.100.7/32 dev eth0 && ping -I 198.51.100.7 -c 2 -W 1 192.0.2.1");
    assert_eq!(dropped("web", "foreign_source"), 2);
    failed("ip addr del 198.51.100.7/32 dev eth0; nc -w 2 192.0.2.2 9 </dev/null");
    assert_eq!(dropped("web", "host_service"), 1);
    failed(&format!("ping -c 1 -W 1 {}", alone.as_str().unwrap()));
    assert_eq!(dropped("web", "isolated_guest"), 1);
    host.holm(&["status", "web"]).ok().has("2 from an address that is not its own");
    let stat = host.holm(&["stat", "--json"]).ok().json();
    let names: Vec<_> = stat.as_array().unwrap().iter().map(|guest| &guest["name"]).collect();
    assert_eq!(names, ["alone", "web"]);
    host.holm(&["rm", "--force", "web", "alone"]).ok();
}

fn stat_shows_running_guests(sandbox: &mut Sandbox) {
    let none = sandbox.holm(&["stat"]).ok();
    assert!(none.stderr.contains("no guest runs"), "{none}");
    for (name, mode) in [("busy", "private"), ("other", "none")] {
        let mode = format!("net.mode={mode}");
        let args = ["launch", name, "--base", "busybox", "--set", &mode, "--", "sh", "-c"];
        sandbox.holm(&[&args[..], &["while :; do :; done"]].concat()).ok();
    }
    let totals = sandbox.holm(&["stat"]).ok();
    totals.has("CPU").has("busy").has("other");
    let watched =
        sandbox.holm(&["stat", "busy", "--watch", "--interval", "500ms", "--count", "2"]).ok();
    assert_eq!(watched.stdout.matches("SENT/s").count(), 2, "{}", watched.stdout);
    assert!(watched.stdout.contains('%') && !watched.stdout.contains("other"));
    let json = ["stat", "--watch", "--interval", "200ms", "--count", "2", "--json"];
    let lines = sandbox.holm(&json).ok().stdout;
    let looks: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, second) = (&looks[0][0], &looks[1][0]);
    assert_eq!((&first["name"], &looks[0][1]["traffic"]), (&"busy".into(), &Value::Null));
    for key in ["at_usec", "cpu_usec"] {
        assert!(second[key].as_u64() > first[key].as_u64(), "{key}: {first} {second}");
    }
    sandbox.holm(&["stat", "nobody"]).refused(&["nobody"]);
    sandbox.holm(&["stat", "--count", "2"]).rejected(&["--watch"]);
    sandbox.holm(&["stat", "--watch", "--interval", "1ms"]).rejected(&["100ms"]);
    sandbox.holm(&["rm", "--force", "busy", "other"]).ok();
}
