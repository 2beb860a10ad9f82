//! Kinds and options of sockets, in a guest that has addresses of its own in the host's network
//! namespace.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::net::connect_unspec;
use rustix::net::netdevice::name_to_index;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::report::Report;

/// What a receiver waits for a datagram that arrives, and for one that does not.
const PATIENCE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_millis(300);

/// Looks at them where `own` is the guest's first address, and `second` another one; `other` is
/// another guest's, of the same family.
pub fn check(report: &mut Report, own: &str, second: &str, other: &str) {
    let [own, second, other]: [IpAddr; 3] =
        [own, second, other].map(|text| text.parse().expect("an address"));
    privileged(report, own);
    protocols(report, own);
    report.works("a UDP socket connects again", connects_again(own, second, other));
    report.works("several sockets on one port", share_a_port(own));
    report.works("of those that listen, any serves", closed_in_turn(own, second));
    report.works("a UDP socket that was not bound gets answers", unbound_is_answered(own));
    report.works("what groups and all hear is not the guest's", groups(own));
    if own.is_ipv4() {
        report.works("sockets that listen are bounded", listeners_are_bounded(own));
    }
}

fn domain(address: IpAddr) -> Domain {
    if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 }
}

fn any(address: IpAddr) -> IpAddr {
    if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

fn at(address: IpAddr, port: u16) -> SockAddr {
    SocketAddr::new(address, port).into()
}

fn udp(address: IpAddr) -> io::Result<Socket> {
    Socket::new(domain(address), Type::DGRAM, Some(Protocol::UDP))
}

/// Options that are for the administrator of the network namespace.
fn privileged(report: &mut Report, own: IpAddr) {
    let Ok(socket) = udp(own) else {
        return report.check(false, "a UDP socket", own);
    };
    report.refused("SO_MARK", socket.set_mark(7));
    report.works("SO_PRIORITY", socket.set_priority(6));
    // With these it would send at another guest's rate, or past connection tracking.
    for priority in [0x486d_0003, 0x486f_0001] {
        report.refused(&format!("SO_PRIORITY {priority:#x}"), socket.set_priority(priority));
    }
    report.works("SO_BINDTODEVICE", socket.bind_device(Some(b"up0")));
    report.works("bound to an interface, its own address", socket.bind(&at(any(own), 0)));
    let transparent = match own {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true),
        IpAddr::V6(_) => socket.set_ip_transparent_v6(true),
    };
    report.refused("IP_TRANSPARENT", transparent);
}

/// Other protocols than those whose addresses are the guest's own, among them SCTP and MPTCP.
fn protocols(report: &mut Report, own: IpAddr) {
    for (name, kind, protocol) in [
        ("SCTP", Type::STREAM, 132),
        ("SCTP of messages", Type::SEQPACKET, 132),
        ("MPTCP", Type::STREAM, 262),
        ("UDP-Lite", Type::DGRAM, 136),
        ("DCCP", Type::DCCP, 33),
    ] {
        report.refused(name, Socket::new(domain(own), kind, Some(Protocol::from(protocol))));
    }
}

/// `AF_UNSPEC` ends a connection, and the next one has the guest's address again.
fn connects_again(own: IpAddr, second: IpAddr, other: IpAddr) -> io::Result<()> {
    let socket = udp(own)?;
    for to in [other, second, other] {
        socket.connect(&at(to, 9))?;
        let here = socket.local_addr()?.as_socket().map(|here| here.ip());
        if here != Some(own) {
            return Err(io::Error::other(format!("connected to {to} from {here:?}")));
        }
        connect_unspec(&socket)?;
    }
    // Until it is connected again, it can send to everybody.
    socket.send_to(b"?", &at(other, 9)).map(drop)
}

/// `SO_REUSEPORT` works among the guest's own sockets.
fn share_a_port(own: IpAddr) -> io::Result<()> {
    let first = udp(own)?;
    first.set_reuse_port(true)?;
    first.bind(&at(any(own), 0))?;
    let port = first.local_addr()?.as_socket().map_or(0, |here| here.port());
    let second = udp(own)?;
    second.set_reuse_port(true)?;
    second.bind(&at(any(own), port))?;
    let third = udp(own)?;
    match third.bind(&at(any(own), port)) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
        other => Err(io::Error::other(format!("one that does not share it: {other:?}"))),
    }
}

/// Of several that listen on one port of all addresses, those that are left serve each address.
fn closed_in_turn(own: IpAddr, second: IpAddr) -> io::Result<()> {
    let listen = |port| {
        let socket = Socket::new(domain(own), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_port(true)?;
        socket.bind(&at(any(own), port))?;
        socket.listen(5)?;
        Ok::<_, io::Error>(socket)
    };
    let first = listen(0)?;
    let port = first.local_addr()?.as_socket().map_or(0, |here| here.port());
    let mut all = vec![first, listen(port)?, listen(port)?];
    // The last first, then the first: a later one stays.
    for close in [2, 0] {
        all.remove(close);
        for to in [own, second] {
            TcpStream::connect_timeout(&SocketAddr::new(to, port), PATIENCE)?;
        }
    }
    drop(all);
    match TcpStream::connect_timeout(&SocketAddr::new(second, port), PATIENCE) {
        Ok(_) => Err(io::Error::other("served after all were closed")),
        Err(_) => Ok(()),
    }
}

/// The kernel gives it a port of all addresses when it sends.
fn unbound_is_answered(own: IpAddr) -> io::Result<()> {
    let socket: UdpSocket = udp(own)?.into();
    let server = UdpSocket::bind((own, 0))?;
    socket.send_to(b"?", server.local_addr()?)?;
    let mut buffer = [0; 8];
    server.set_read_timeout(Some(PATIENCE))?;
    let (_, client) = server.recv_from(&mut buffer)?;
    server.send_to(b"!", client)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let (_, from) = socket.recv_from(&mut buffer)?;
    let right = client.ip() == own && from == server.local_addr()?;
    if right { Ok(()) } else { Err(io::Error::other(format!("{client} answered by {from}"))) }
}

/// Groups that nobody else uses, and the port where a program of the host hears them.
const GROUPS: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(239, 1, 2, 3), Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x123));
const HOSTS_PORT: u16 = 7009;

/// A socket can be bound to no group, and one that joins a group hears nothing of it: it would hear
/// the other guests and the host.
fn groups(own: IpAddr) -> io::Result<()> {
    let (joined, sender, bound) = (udp(own)?, udp(own)?, udp(own)?);
    let interface = name_to_index(&joined, "up0")?;
    let mut all: Vec<IpAddr> = match own {
        IpAddr::V4(_) => {
            joined.join_multicast_v4(&GROUPS.0, &Ipv4Addr::UNSPECIFIED)?;
            sender.set_multicast_loop_v4(true)?;
            vec![GROUPS.0.into()]
        }
        IpAddr::V6(_) => {
            joined.join_multicast_v6(&GROUPS.1, interface)?;
            sender.set_multicast_loop_v6(true)?;
            sender.set_multicast_if_v6(interface)?;
            vec![GROUPS.1.into()]
        }
    };
    if bound.bind(&at(all[0], 0)).is_ok() {
        return Err(io::Error::other("bound to a group"));
    }
    joined.send_to(b"?", &at(own, 9))?;
    let joined = UdpSocket::from(joined);
    let port = joined.local_addr()?.port();
    joined.set_read_timeout(Some(SILENCE))?;
    sender.set_broadcast(own.is_ipv4())?;
    all.extend(own.is_ipv4().then_some(IpAddr::from(Ipv4Addr::BROADCAST)));
    for to in all {
        sender.send_to(b"?", &at(to, port))?;
        if joined.recv_from(&mut [0; 8]).is_ok() {
            return Err(io::Error::other(format!("heard what is sent to {to}")));
        }
        sender.send_to(b"?", &at(to, HOSTS_PORT))?;
    }
    sender.send_to(b"?", &at(own, port))?;
    joined.set_read_timeout(Some(PATIENCE))?;
    joined.recv_from(&mut [0; 8]).map(drop)
}

/// As many sockets of a guest can listen (`LISTENERS_OF_A_GUEST` of the BPF programs).
const LISTENERS: usize = 1024;

/// One more than it can have is refused connections, until others are closed.
fn listeners_are_bounded(own: IpAddr) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let listen = || TcpListener::bind((own, 0));
    let mut all = (0..LISTENERS + 10).map(|_| listen()).collect::<io::Result<Vec<_>>>()?;
    let reached = |listener: &TcpListener| {
        let to = listener.local_addr()?;
        Ok::<_, io::Error>(TcpStream::connect_timeout(&to, PATIENCE).is_ok())
    };
    let (first, last) = (reached(&all[0])?, reached(&all[LISTENERS + 9])?);
    all.truncate(LISTENERS - 100);
    let again = reached(&listen()?)?;
    match (first, last, again) {
        (true, false, true) => Ok(()),
        other => Err(io::Error::other(format!("the first, the last, a later one: {other:?}"))),
    }
}

/// The lists of sockets in /proc/net.
const LISTS: [&str; 7] = ["tcp", "tcp6", "udp", "udp6", "raw", "unix", "netlink"];

/// Nothing lists the sockets of the network namespace (`net.hide-sockets`).
pub fn hidden(report: &mut Report) {
    for name in LISTS {
        for proc in ["/proc/net", "/proc/1/net", "/dev/.holm/proc/net"] {
            let path = format!("{proc}/{name}");
            report.refused(&path, File::open(&path));
        }
    }
    for (name, kind) in [("SOCK_RAW", Type::RAW), ("SOCK_DGRAM", Type::DGRAM)] {
        let (netlink, sock_diag) = (Domain::from(16), Protocol::from(4));
        report.refused(&format!("sock_diag, {name}"), Socket::new(netlink, kind, Some(sock_diag)));
        let route = Socket::new(netlink, kind, Some(Protocol::from(0)));
        report.works(&format!("rtnetlink, {name}"), route);
    }
}

/// Takes ports that the kernel chooses from, at `own`, as many as it gets sockets; says how many,
/// and keeps them until its input ends.
pub fn take_ports(report: &mut Report, own: &str) {
    let own: IpAddr = own.parse().expect("an address");
    match all_ports(own) {
        Ok(mut taken) => {
            let count = taken.len();
            report.refused("one more socket", udp(own));
            taken.pop();
            report.works("a socket after one was closed", udp(own));
            println!("took {count}");
            let _ = io::stdin().read_to_end(&mut Vec::new());
            loop {
                std::thread::park();
            }
        }
        Err(error) => report.check(false, "take ports", error),
    }
}

fn all_ports(own: IpAddr) -> io::Result<Vec<Socket>> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    let ends: Vec<u16> = range.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [first, last] = ends[..] else { return Err(io::Error::other(range)) };
    let mut all = Vec::new();
    for port in first..=last {
        for (kind, protocol) in [(Type::STREAM, Protocol::TCP), (Type::DGRAM, Protocol::UDP)] {
            let Ok(socket) = Socket::new(domain(own), kind, Some(protocol)) else { return Ok(all) };
            socket.bind(&at(own, port))?;
            all.push(socket);
        }
    }
    Ok(all)
}
