//! A guest's private network, from the host's side.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{exec, remove, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(serves_on_its_address_and_on_a_published_port).bases(&["busybox"]),
    test!(a_taken_port_is_refused).bases(&["busybox"]),
];

/// What a web server at `address` answers.
fn get(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// A port that nobody listens on just now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn serves_on_its_address_and_on_a_published_port(sandbox: &mut Sandbox) {
    let port = free_port();
    let publish = format!("{port}:80");
    let words = ["launch", "web", "--base", "busybox", "-p", &publish, "--", "sh", "-c"];
    let server =
        "mkdir -p /srv && echo hello from inside >/srv/page && exec httpd -f -p 80 -h /srv";
    sandbox.holm(&[&words[..], &[server]].concat()).ok();
    let address = status(sandbox, "web")["state"]["net"]["guest_v4"]
        .as_str()
        .and_then(|a| a.parse::<IpAddr>().ok());
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
    let words = ["launch", "web", "--base", "busybox", "-p", &publish, "--", "sleep", "1000"];
    sandbox.holm(&words).refused(&[&port]);
    assert_eq!(sandbox.holm(&["ls", "-q"]).ok().stdout, "", "nothing was made");
}
