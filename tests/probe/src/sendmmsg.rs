//! Many datagrams by one call, each with a destination of its own.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

use crate::report::Report;

const PATIENCE: Duration = Duration::from_secs(5);

/// `own` is the guest's address, `loopback` 127.0.0.1 or `::1`, `other` another guest's address;
/// `hosts` is what no guest reaches, if any.
pub fn check(report: &mut Report, [own, loopback, other]: [&str; 3], hosts: Option<&str>) {
    let [own, loopback, other]: [IpAddr; 3] =
        [own, loopback, other].map(|text| text.parse().expect("an address"));
    report.works("each is sent to its destination", each_arrives(own, loopback, other));
    if let Some(hosts) = hosts {
        let hosts = hosts.parse().expect("an address and a port");
        report.works("those behind a refused one are not", one_is_refused(own, hosts));
    }
}

fn send(socket: &UdpSocket, to: &[SocketAddr]) -> io::Result<usize> {
    let to: Vec<SocketAddrAny> = to.iter().map(|&to| to.into()).collect();
    let text = [IoSlice::new(b"?")];
    let mut controls: Vec<_> = to.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let mut messages: Vec<_> = to
        .iter()
        .zip(&mut controls)
        .map(|(to, control)| MMsgHdr::new_with_addr(to, &text, control))
        .collect();
    Ok(sendmmsg(socket, &mut messages, SendFlags::empty())?)
}

fn receiver(address: IpAddr) -> io::Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let at = socket.local_addr()?;
    Ok((socket, at))
}

/// Two to the guest itself, between them one to another guest.
fn each_arrives(own: IpAddr, loopback: IpAddr, other: IpAddr) -> io::Result<()> {
    let ((by_address, at), (by_loopback, local)) = (receiver(own)?, receiver(loopback)?);
    let socket = UdpSocket::bind((any(own), 0))?;
    let sent = send(&socket, &[at, SocketAddr::new(other, 9), local])?;
    let from =
        [&by_address, &by_loopback].map(|it| it.recv_from(&mut [0; 8]).map(|(_, from)| from.ip()));
    let [first, second] = from;
    match (sent, first?, second?) {
        (3, first, second) if first == own && second == loopback => Ok(()),
        other => Err(io::Error::other(format!("sent and received from {other:?}"))),
    }
}

/// The call ends there, and says so if it is the first.
fn one_is_refused(own: IpAddr, hosts: SocketAddr) -> io::Result<()> {
    let (_receiver, at) = receiver(own)?;
    let socket = UdpSocket::bind((any(own), 0))?;
    match (send(&socket, &[at, hosts, at])?, send(&socket, &[hosts, at])) {
        (1, Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        other => Err(io::Error::other(format!("sent {other:?}"))),
    }
}

fn any(like: IpAddr) -> IpAddr {
    let any = if like.is_ipv4() { "0.0.0.0" } else { "::" };
    any.parse().expect("an address")
}
