//! Abstract Unix sockets.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_passcred;

fn abstract_name(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(name).expect("a short name")
}

/// Answers at the abstract name: with it, by streams, and by datagrams at the name with a d behind.
pub fn serve(name: &str) {
    let listener = UnixListener::bind_addr(&abstract_name(name)).expect("a free name");
    let datagrams =
        UnixDatagram::bind_addr(&abstract_name(&format!("{name}d"))).expect("a free name");
    let answer = name.to_owned();
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((_, client)) = datagrams.recv_from(&mut buffer) {
            let _ = datagrams.send_to_addr(answer.as_bytes(), &client);
        }
    });
    println!("serving");
    for mut stream in listener.incoming().flatten() {
        let _ = stream.write_all(name.as_bytes());
    }
}

/// Says what is answered at the names, or why there is no answer: by a stream, by a datagram, and
/// by one of a connected socket.
pub fn ask(names: &[&str]) {
    for name in names {
        let to = abstract_name(&format!("{name}d"));
        let all = [by_stream(name), by_datagram(&to, false), by_datagram(&to, true)];
        let all = all.map(|it| it.unwrap_or_else(|error| format!("{:?}", error.kind())));
        println!("{name}: {}", all.join(" "));
    }
}

fn by_stream(name: &str) -> io::Result<String> {
    let mut text = String::new();
    UnixStream::connect_addr(&abstract_name(name))?.read_to_string(&mut text)?;
    Ok(text)
}

/// From an address that the kernel gives a socket which wants credentials.
fn by_datagram(to: &SocketAddr, connected: bool) -> io::Result<String> {
    let socket = UnixDatagram::unbound()?;
    set_socket_passcred(&socket, true)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    if connected {
        socket.connect_addr(to)?;
        socket.send(b"?")?;
    } else {
        socket.send_to_addr(b"?", to)?;
    }
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}
