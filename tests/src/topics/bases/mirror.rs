//! Packages come from the mirror that `--mirror` names, and from no other.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use super::{objects, stages};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(the_named_mirror_is_asked)];

/// A web server on loopback without any file: its port, and the first line of each request.
fn empty_mirror() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(&client).read_line(&mut line);
            let answer =
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = client.write_all(answer);
            if send.send(line).is_err() {
                return;
            }
        }
    });
    (port, receive)
}

fn the_named_mirror_is_asked(sandbox: &mut Sandbox) {
    let (port, requests) = empty_mirror();
    let mirror = format!("http://127.0.0.1:{port}/of/mine");
    let args = ["base", "import", "deb", "debootstrap:trixie", "--mirror", &mirror];
    // The whole reason comes from apt, which names what it asked.
    sandbox.holm(&args).refused(&["deb", &mirror, "does not have a Release file"]);
    let asked: Vec<String> = requests.try_iter().collect();
    assert!(asked.iter().any(|line| line.starts_with("GET /of/mine/dists/trixie/")), "{asked:?}");
    assert_eq!(sandbox.holm(&["base", "ls", "--json"]).ok().stdout.trim(), "[]");
    assert!(stages(sandbox.root()).is_empty() && objects(sandbox.root()).is_empty());
}
