//! Published ports.

use holm::config::{Net, Ports, Proto};
use holm::net;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::topology::{PATIENCE, Topology};
use super::{TCP_80, published};
use crate::guest::{exec, remove, status};
use crate::host::free_port;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(published_ports_answer_everywhere),
    test!(ports_published_on_one_address_answer_there_only),
    test!(servers_see_their_clients_addresses),
    test!(taken_ports_name_their_owner),
    test!(ports_of_a_dead_guest_are_freed),
    test!(an_ended_guests_ports_are_unpublished_at_once),
    test!(serves_on_its_address_and_on_a_published_port).bases(&["busybox"]),
    test!(a_taken_port_is_refused).bases(&["busybox"]),
    test!(a_range_of_ports_leads_to_the_same_ports_and_to_ssh),
    test!(a_guest_has_the_same_range_of_ports_at_each_start).bases(&["busybox"]),
];

fn published_ports_answer_everywhere(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = published(&[(None, 8080, 80, Proto::Tcp), (None, 5353, 53, Proto::Udp)]);
    let guest = topology.guest(1, 5, &net);
    let other = topology.guest(1, 6, &Net::default());
    let _servers = [guest.netns.serve_tcp("[::]:80"), guest.netns.serve_udp("[::]:53")];
    for from in [&topology.host, &topology.outside, &other.netns, &guest.netns] {
        assert!(from.reaches("192.0.2.2:8080").is_some());
        assert!(from.reaches("[2001:db8::2]:8080").is_some());
    }
    assert!(topology.host.reaches("127.0.0.1:8080").is_some());
    for (from, to) in [
        (&topology.host, "127.0.0.1:5353"),
        (&topology.host, "192.0.2.2:5353"),
        (&topology.outside, "192.0.2.2:5353"),
        (&topology.outside, "[2001:db8::2]:5353"),
    ] {
        assert!(from.ask_udp(to, PATIENCE).is_some(), "{to}");
    }
    topology.host.with(|| net::detach_unrecorded(1, 5).unwrap());
    assert!(topology.outside.is_cut_off_from("192.0.2.2:8080"));
}

/// Of clients elsewhere; not those of clients that only the host can answer.
fn servers_see_their_clients_addresses(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = published(&[(None, 8080, 80, Proto::Tcp), (None, 5353, 53, Proto::Udp)]);
    let guest = topology.guest(1, 5, &net);
    let other = topology.guest(1, 6, &Net::default());
    let _servers = [guest.netns.serve_tcp("[::]:80"), guest.netns.serve_udp("[::]:53")];
    let (v4, v6) = (other.plan.guest_v4, other.plan.guest_v6.unwrap());
    for (from, to, seen) in [
        (&topology.outside, "192.0.2.2:8080", "192.0.2.1".parse().unwrap()),
        (&topology.outside, "[2001:db8::2]:8080", "2001:db8::1".parse().unwrap()),
        (&other.netns, "192.0.2.2:8080", v4.into()),
        (&other.netns, "[2001:db8::2]:8080", v6.into()),
        (&topology.host, "192.0.2.2:8080", "192.0.2.2".parse().unwrap()),
        (&topology.host, "127.0.0.1:8080", "169.254.1.1".parse().unwrap()),
        (&guest.netns, "192.0.2.2:8080", "169.254.1.1".parse().unwrap()),
    ] {
        let answer = from.reaches(to).map(|address: IpAddr| address.to_canonical());
        assert_eq!(answer, Some(seen), "{to}");
    }
    let asked = topology.outside.ask_udp("192.0.2.2:5353", PATIENCE);
    assert_eq!(asked.map(|address| address.to_canonical()), Some("192.0.2.1".parse().unwrap()));
}

fn ports_published_on_one_address_answer_there_only(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = published(&[
        (Some("127.0.0.1"), 8080, 80, Proto::Tcp),
        (Some("192.0.2.2"), 8081, 80, Proto::Tcp),
        (Some("2001:db8::2"), 8082, 80, Proto::Tcp),
    ]);
    let guest = topology.guest(1, 1, &net);
    let _server = guest.netns.serve_tcp("[::]:80");
    assert!(topology.host.reaches("127.0.0.1:8080").is_some());
    assert!(topology.outside.is_cut_off_from("192.0.2.2:8080"));
    assert!(topology.host.is_cut_off_from("192.0.2.2:8080"));
    assert!(topology.outside.reaches("192.0.2.2:8081").is_some());
    assert!(topology.host.is_cut_off_from("127.0.0.1:8081"));
    assert!(topology.outside.reaches("[2001:db8::2]:8082").is_some());
    assert!(topology.outside.is_cut_off_from("192.0.2.2:8082"));
}

fn taken_ports_name_their_owner(_: &mut Sandbox) {
    let topology = Topology::new();
    let listener = topology.host.with(|| TcpListener::bind("127.0.0.1:8080").unwrap());
    let refuse = |instance, context, ports: &[_]| {
        topology
            .host
            .with(|| net::plan(instance, context, &published(ports)).unwrap_err().to_string())
    };
    let error = refuse(1, 1, TCP_80);
    let pid = std::process::id();
    assert!(error.contains("8080/tcp") && error.contains(&format!("(pid {pid})")), "{error}");
    drop(listener);
    let _guest = topology.guest(1, 1, &published(TCP_80));
    let error = refuse(2, 9, &[(Some("192.0.2.2"), 8080, 1, Proto::Tcp)]);
    assert!(error.contains("publishes it already"), "{error}");
    topology.host.with(|| net::plan(2, 9, &published(&[(None, 8080, 80, Proto::Udp)])).unwrap());
    let error = refuse(1, 2, &[(Some("192.0.2.77"), 9000, 1, Proto::Tcp)]);
    assert!(error.contains("no address 192.0.2.77"), "{error}");
    let error =
        refuse(1, 2, &[(None, 9000, 1, Proto::Tcp), (Some("127.0.0.1"), 9000, 2, Proto::Tcp)]);
    assert!(error.contains("this guest itself"), "{error}");
    // The same guest again, whose end was not noticed: its own interface is no conflict.
    topology.host.with(|| net::plan(1, 1, &published(TCP_80)).unwrap());
}

fn ports_of_a_dead_guest_are_freed(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let living = topology.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let dead = topology.guest(1, 2, &published(TCP_80));
    drop(dead);
    sandbox.wait_for("the dead guest's interface goes", || {
        (topology.host.with(|| net::attached_contexts(1).unwrap()) == [1]).then_some(())
    });
    assert!(
        topology.host.sh("nft list table inet holm-1").contains("8080"),
        "nobody cleaned up yet"
    );
    topology.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    assert!(!topology.host.sh("nft list table inet holm-1").contains("8080"));
    let _server = living.netns.serve_tcp("[::]:80");
    assert!(topology.outside.reaches("192.0.2.2:8081").is_some());
}

/// The interface may outlive the guest a little; the ports must not.
fn an_ended_guests_ports_are_unpublished_at_once(_: &mut Sandbox) {
    let topology = Topology::new();
    let _living = topology.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let ended = topology.guest(1, 2, &published(TCP_80));
    topology.host.with(|| net::clean_up(&ended.plan).unwrap());
    let rules = topology.host.sh("nft list table inet holm-1");
    assert!(rules.contains("8081") && !rules.contains("8080"), "{rules}");
    let next = topology.guest(1, 3, &published(TCP_80));
    topology.host.with(|| net::clean_up(&ended.plan).unwrap());
    let _server = next.netns.serve_tcp("[::]:80");
    assert!(topology.outside.reaches("192.0.2.2:8080").is_some(), "it is the next one's now");
}

/// What a web server at `address` answers.
fn get(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn serves_on_its_address_and_on_a_published_port(sandbox: &mut Sandbox) {
    let port = free_port();
    let publish = format!("{port}:80");
    let args = ["launch", "web", "--base", "busybox", "-p", &publish, "--", "sh", "-c"];
    let server =
        "mkdir -p /srv && echo hello from inside >/srv/page && exec httpd -f -p 80 -h /srv";
    sandbox.holm(&[&args[..], &[server]].concat()).ok();
    let address =
        status(sandbox, "web")["addresses"][0].as_str().and_then(|a| a.parse::<IpAddr>().ok());
    let address = address.expect("an address");
    let hello = |answer: String| answer.contains("hello from inside").then_some(());
    sandbox
        .wait_for("the guest's own address answers", || get((address, 80).into()).and_then(hello));
    sandbox.wait_for("the published port answers", || {
        get(([127, 0, 0, 1], port).into()).and_then(hello)
    });
    exec(sandbox, "web", "ip addr show eth0 | grep -q 'inet 10\\.'").ok();
    remove(sandbox, "web");
    assert!(get(([127, 0, 0, 1], port).into()).is_none(), "the port is closed again");
}

fn a_taken_port_is_refused(sandbox: &mut Sandbox) {
    let taken = TcpListener::bind("0.0.0.0:0").expect("a port of our own");
    let port = taken.local_addr().expect("bound").port().to_string();
    let publish = format!("{port}:80");
    let args = ["launch", "web", "--base", "busybox", "-p", &publish, "--", "sleep", "1000"];
    sandbox.holm(&args).refused(&[&port]);
    assert_eq!(sandbox.holm(&["ls", "-q"]).ok().stdout, "", "nothing was made");
}

fn a_range_of_ports_leads_to_the_same_ports_and_to_ssh(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = Net { ports: Some(Ports::Auto(4)), ..published(&[(None, 10226, 80, Proto::Tcp)]) };
    let guest = topology.guest(1, 7, &net);
    let _servers = [
        guest.netns.serve_tcp("[::]:22"),
        guest.netns.serve_tcp("[::]:10225"),
        guest.netns.serve_udp("[::]:10227"),
        guest.netns.serve_tcp("[::]:80"),
        guest.netns.serve_tcp("[::]:10228"),
    ];
    for address in ["192.0.2.2", "[2001:db8::2]"] {
        let at = |port: u16| format!("{address}:{port}");
        assert!(topology.outside.reaches(&at(10224)).is_some(), "the lowest leads to ssh");
        assert!(topology.outside.reaches(&at(10225)).is_some());
        assert!(topology.outside.ask_udp(&at(10227), PATIENCE).is_some());
        assert!(topology.outside.reaches(&at(10226)).is_some(), "leads where net.publish says");
        assert!(topology.outside.is_cut_off_from(&at(10228)), "is not of the range");
    }
    // The blocks of two Holm roots meet where context ids are far apart.
    let error = topology.host.with(|| {
        let net = Net { ports: Some(Ports::Range(10220, 10224)), ..Net::default() };
        net::plan(2, 9, &net).unwrap_err().to_string()
    });
    assert!(error.contains("10224/") && error.contains("publishes it already"), "{error}");
}

fn a_guest_has_the_same_range_of_ports_at_each_start(sandbox: &mut Sandbox) {
    for (name, ports) in [("one", "auto:8"), ("two", "auto")] {
        let ports = format!("net.ports={ports}");
        let args = ["create", name, "--base", "busybox", "--set", &ports, "--", "sleep", "600"];
        sandbox.holm(&args).ok();
    }
    sandbox.holm(&["start", "one", "two"]).ok();
    let ports = |sandbox: &Sandbox, guest| status(sandbox, guest)["ports"].clone();
    let (one, two) = (ports(sandbox, "one"), ports(sandbox, "two"));
    let list = |ports: &serde_json::Value| ports.as_array().expect("a list").clone();
    assert_eq!((list(&one).len(), list(&two).len()), (16, 64));
    let first = one[0]["host_port"].as_u64().expect("a port");
    assert_eq!((&one[0]["guest_port"], &one[0]["protocol"]), (&22.into(), &"tcp".into()));
    assert!(list(&one).iter().all(|port| {
        let host_port = port["host_port"].as_u64().expect("a port");
        (first..first + 8).contains(&host_port) && !list(&two).contains(port)
    }));
    let rest = format!("{}-{}", first + 1, first + 7);
    sandbox.holm(&["ls", "--columns", "name,ports"]).ok().has(&format!("{first}:22/tcp"));
    sandbox.holm(&["status", "one"]).ok().has(&format!("{rest}:{rest}/tcp"));
    sandbox.holm(&["rm", "--force", "two"]).ok();
    sandbox.holm(&["restart", "one"]).ok();
    assert_eq!(ports(sandbox, "one"), one);
    sandbox.holm(&["rm", "--force", "one"]).ok();
}
