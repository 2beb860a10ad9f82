//! Servers and clients of a guest that has addresses of its own in the host's network namespace.

use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket,
};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with, sockopt,
};

use crate::report::Report;

/// What a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where [`serve`] listens: each guest with all of these, beside its neighbours.
const TCP: [&str; 6] =
    ["0.0.0.0:80", "[::]:81", "127.0.0.1:25", "[::1]:26", "127.0.0.53:53", "0.0.0.0:22"];
const UDP: [&str; 3] = ["0.0.0.0:53", "[::]:54", "127.0.0.53:53"];
/// An IPv6 socket that takes no IPv4.
const IPV6_ONLY: &str = "[::]:82";
/// Listens without having been bound; its port is said at [`ANNOUNCED`].
const ANNOUNCED: &str = "127.0.0.1:99";

/// Serves everywhere until its input ends. A connection and a datagram are answered with `name`,
/// the client's address and the server's own.
pub fn serve(report: &mut Report, name: &str) {
    for at in TCP {
        let bound = TcpListener::bind(at);
        report.works(&format!("listen at {at}"), bound.as_ref());
        let Ok(listener) = bound else { continue };
        is(report, &format!("the name of {at}"), listener.local_addr(), at);
        answer_tcp(listener, name.to_owned());
    }
    match only_ipv6(IPV6_ONLY) {
        Ok(listener) => {
            is(report, &format!("the name of {IPV6_ONLY}"), listener.local_addr(), IPV6_ONLY);
            answer_tcp(listener, name.to_owned());
        }
        Err(error) => report.check(false, &format!("listen at {IPV6_ONLY}"), error),
    }
    for at in UDP {
        let bound = UdpSocket::bind(at);
        report.works(&format!("receive at {at}"), bound.as_ref());
        let Ok(socket) = bound else { continue };
        is(report, &format!("the name of {at}"), socket.local_addr(), at);
        answer_udp(socket, name.to_owned());
    }
    for at in ["0.0.0.0:7", "[::]:8"] {
        report.works(&format!("listen at {at}"), TcpListener::bind(at).map(echo));
    }
    report.works("listen without an address", announce_unbound(name.to_owned()));
    println!("serving");
    let _ = io::stdin().read_to_end(&mut Vec::new());
    loop {
        thread::park();
    }
}

/// Serves at each of `all`, such as tcp:0.0.0.0:80 (tcp6 for IPv6 alone, udp-shared, udp-reuseport
/// and tcp-reuseport for a socket that allows others at its port), and says which are refused.
pub fn serve_at(name: &str, all: &[&str]) {
    let mut refused = false;
    for at in all {
        let (protocol, address) = at.split_once(':').expect("a protocol");
        let owned = name.to_owned();
        let served = match protocol {
            "tcp" => TcpListener::bind(address).map(|it| answer_tcp(it, owned)),
            "tcp6" => only_ipv6(address).map(|it| answer_tcp(it, owned)),
            "udp" => UdpSocket::bind(address).map(|it| answer_udp(it, owned)),
            "tcp-reuseport" => allows_others(address, SocketType::STREAM, true)
                .map(|it| answer_tcp(it.into(), owned)),
            "udp-reuseport" => allows_others(address, SocketType::DGRAM, true)
                .map(|it| answer_udp(it.into(), owned)),
            _ => allows_others(address, SocketType::DGRAM, false)
                .map(|it| answer_udp(it.into(), owned)),
        };
        if let Err(error) = served {
            println!("{at}: {:?}", error.kind());
            refused = true;
        }
    }
    if refused {
        return;
    }
    println!("serving");
    loop {
        thread::park();
    }
}

/// A socket that allows others at its port: all of its user's (`SO_REUSEPORT`), or any that says so
/// too (`SO_REUSEADDR`).
fn allows_others(at: &str, kind: SocketType, of_user: bool) -> io::Result<OwnedFd> {
    let at: SocketAddr = at.parse().map_err(io::Error::other)?;
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if of_user {
        sockopt::set_socket_reuseport(&socket, true)?;
    } else {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &at)?;
    if kind == SocketType::STREAM {
        listen(&socket, 5)?;
    }
    Ok(socket)
}

fn is(report: &mut Report, what: &str, found: io::Result<SocketAddr>, expected: &str) {
    match found {
        Ok(found) => report.check(found.to_string() == expected, what, found),
        Err(error) => report.check(false, what, error),
    }
}

pub fn answer_tcp(listener: TcpListener, name: String) {
    thread::spawn(move || {
        while let Ok((mut stream, client)) = listener.accept() {
            let here = stream.local_addr().map_or_else(|e| e.to_string(), shown);
            let _ = write!(stream, "{name} asked by {} at {here}", shown(client));
        }
    });
}

/// Sends back what each client sends, until it ends.
fn echo(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
}

pub fn answer_udp(socket: UdpSocket, name: String) {
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((_, client)) = socket.recv_from(&mut buffer) {
            let text = format!("{name} asked by {}", shown(client));
            if let Err(error) = socket.send_to(text.as_bytes(), client) {
                println!("no answer to {}: {:?}", shown(client), error.kind());
            }
        }
    });
}

/// An address without its port, and as IPv4 if it is that.
fn shown(address: SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}

fn only_ipv6(at: &str) -> io::Result<TcpListener> {
    let at: SocketAddrV6 = at.parse().map_err(io::Error::other)?;
    let socket = stream(AddressFamily::INET6)?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, 5)?;
    Ok(socket.into())
}

fn stream(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

fn announce_unbound(name: String) -> io::Result<()> {
    let socket = stream(AddressFamily::INET)?;
    listen(&socket, 5)?;
    let listener = TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    answer_tcp(listener, name);
    let announcer = TcpListener::bind(ANNOUNCED)?;
    thread::spawn(move || {
        while let Ok((mut stream, _)) = announcer.accept() {
            let _ = write!(stream, "{port}");
        }
    });
    Ok(())
}

/// Says what a server answers, or why there is no answer.
pub fn ask(protocol: &str, to: &str) {
    let asked = match protocol {
        "tcp" => ask_tcp(to),
        "udp" => ask_udp(to, Some(0), false),
        "udp-from-7010" => ask_udp(to, Some(7010), false),
        "udp-unbound" => ask_udp(to, None, false),
        _ => ask_udp(to, Some(0), true),
    };
    match asked {
        Ok(text) => println!("{text}"),
        Err(error) => println!("{:?}", error.kind()),
    }
}

fn ask_tcp(to: &str) -> io::Result<String> {
    let to: SocketAddr = to.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if stream.peer_addr()? != to {
        return Ok(format!("connected to {} instead", stream.peer_addr()?));
    }
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Asks again each second: nothing says that a datagram arrives.
fn ask_udp(to: &str, from: Option<u16>, connected: bool) -> io::Result<String> {
    let to: SocketAddr = to.parse().map_err(io::Error::other)?;
    let any: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = if let Some(port) = from {
        UdpSocket::bind((any, port))?
    } else {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?.into()
    };
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    if connected {
        socket.connect(to)?;
    }
    let mut buffer = [0; 128];
    let mut last = io::ErrorKind::TimedOut.into();
    for _ in 0..PATIENCE.as_secs() {
        let sent = if connected { socket.send(b"?") } else { socket.send_to(b"?", to) };
        match sent.and_then(|_| socket.recv_from(&mut buffer)) {
            Ok((length, from)) if from == to => {
                return Ok(String::from_utf8_lossy(&buffer[..length]).into_owned());
            }
            Ok((_, from)) => return Ok(format!("answered by {from} instead")),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a guest with address `own` cannot do, where others of the host have `others`, and `outside`
/// is another machine.
pub fn confined(report: &mut Report, own: &str, outside: &str, others: &[&str]) {
    for other in others {
        let at = |port: u16| (other.parse::<IpAddr>().expect("an address"), port);
        not_available(report, &format!("TCP at {other}"), TcpListener::bind(at(0)));
        not_available(report, &format!("UDP at {other}"), UdpSocket::bind(at(0)));
        if at(0).0.is_ipv4() == own.parse::<IpAddr>().expect("an address").is_ipv4() {
            report.refused(&format!("send as {other}"), send_as(own, other, outside, false));
            // Whether it was sent, the kernel does not say of IPv6: outside it is counted.
            let _ = send_as(own, other, outside, true);
            match hears(own, other) {
                Ok(heard) => report.check(!heard, "hear what is sent to others", other),
                Err(error) => report.check(false, "hear what is sent to others", error),
            }
        }
    }
    for loopback in ["127.0.1.1", "127.4.0.1", "127.255.255.254"] {
        not_available(report, &format!("TCP at {loopback}"), TcpListener::bind((loopback, 0)));
        report.refused(&format!("ask {loopback}"), ask_tcp(&format!("{loopback}:7000")));
    }
    for (family, name) in [(AddressFamily::INET, "IPv4"), (AddressFamily::INET6, "IPv6")] {
        let raw = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP));
        report.refused(&format!("a raw socket of {name}"), raw);
    }
    let packet = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
    report.refused("a packet socket", packet);
    let elsewhere = stream(AddressFamily::INET).and_then(|socket| {
        sockopt::set_ip_freebind(&socket, true)?;
        Ok(bind(&socket, &SocketAddr::from(([198, 51, 100, 1], 0)))?)
    });
    not_available(report, "an address that nobody has (IP_FREEBIND)", elsewhere);
    let elsewhere = stream(AddressFamily::INET6).and_then(|socket| {
        sockopt::set_ipv6_freebind(&socket, true)?;
        Ok(bind(&socket, &SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 1), 0)))?)
    });
    not_available(report, "an address that nobody has (IPV6_FREEBIND)", elsewhere);
}

/// Whether a socket without an address hears what is sent to another address of the host. What is
/// sent to the guest's own it must hear.
fn hears(own: &str, other: &str) -> io::Result<bool> {
    let (own, other): (IpAddr, IpAddr) =
        (own.parse().expect("an address"), other.parse().expect("an address"));
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let unbound: UdpSocket =
        socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?.into();
    unbound.send_to(b"?", (own, 9))?;
    let port = unbound.local_addr()?.port();
    let sender = UdpSocket::bind((own, 0))?;
    let mut received = [0; 8];
    sender.send_to(b"own", (own, port))?;
    unbound.set_read_timeout(Some(PATIENCE))?;
    unbound.recv_from(&mut received)?;
    sender.send_to(b"other", (other, port))?;
    unbound.set_read_timeout(Some(Duration::from_millis(300)))?;
    Ok(unbound.recv_from(&mut received).is_ok())
}

fn not_available<T>(report: &mut Report, what: &str, bound: io::Result<T>) {
    match bound {
        Ok(_) => report.check(false, what, "it was bound"),
        Err(error) => {
            report.check(error.kind() == io::ErrorKind::AddrNotAvailable, what, error);
        }
    }
}

/// Sends a datagram, or a ping, with another source address (`IP_PKTINFO`, `IPV6_PKTINFO`). Of a
/// ping no hook of a system call sees it.
fn send_as(own: &str, other: &str, outside: &str, ping: bool) -> io::Result<()> {
    let [own, other, outside]: [IpAddr; 3] =
        [own, other, outside].map(|text| text.parse().expect("an address"));
    let (family, protocol, echo) = match own {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128),
    };
    let protocol = ping.then_some(protocol);
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)?;
    connect(&socket, &SocketAddr::new(outside, 9))?;
    let request = [echo, 0, 0, 0, 0, 0, 0, 1];
    if ping {
        // From its own address it is let through: else nothing is shown by what follows.
        holm_sys::socket::send_from(&socket, &request, own).expect("a ping");
    }
    holm_sys::socket::send_from(&socket, &request, other)
}

/// Opens so many connections, one after the other, and closes each before the server does: the port
/// stays taken for a minute. Says how many, and why there was not another one.
pub fn close_first(to: &str, count: u64) {
    let to: SocketAddr = to.parse().expect("an address");
    for done in 0..count {
        if let Err(error) = TcpStream::connect_timeout(&to, PATIENCE) {
            println!("{done} {:?}", error.kind());
            return;
        }
    }
    println!("{count}");
}

/// Opens so many connections: a datagram to each of as many ports.
pub fn flood_ports(to: &str, count: u64) {
    let to: IpAddr = to.parse().expect("an address");
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    for port in (20000..=65535).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        // A full queue is no error here.
        let _ = socket.send_to(b"?", (to, port));
    }
}

/// Sends so many datagrams of 1000 bytes at once.
pub fn burst(to: &str, count: u64) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    for _ in 0..count {
        socket.send_to(&[0; 1000], to).expect("room for a datagram");
    }
}

/// Sends a datagram to each address of a network, whose first two bytes these are, again and again
/// until a time that no test needs.
pub fn flood_addresses(network: &str) {
    let network: Ipv4Addr = network.parse().expect("an address");
    let [a, b, ..] = network.octets();
    let end = Instant::now() + Duration::from_mins(2);
    // What waits for a neighbour fills the socket that it was sent by.
    let sockets: Vec<_> = (0..256)
        .map(|_| UdpSocket::bind("0.0.0.0:0").expect("a socket"))
        .inspect(|socket| socket.set_nonblocking(true).expect("a socket"))
        .collect();
    while Instant::now() < end {
        for (number, socket) in (256..=65000u16).zip(sockets.iter().cycle()) {
            let [c, d] = number.to_be_bytes();
            // An error is what a full table gives.
            let _ = socket.send_to(b"?", (Ipv4Addr::new(a, b, c, d), 9));
        }
    }
}

/// Sends as much as a server takes, for a time that no test needs, so that it ends in any case.
pub fn flood(to: &str) {
    let end = Instant::now() + Duration::from_mins(2);
    let mut stream = TcpStream::connect(to).expect("a server");
    let bytes = vec![0; 65536];
    while Instant::now() < end && stream.write_all(&bytes).is_ok() {}
}
