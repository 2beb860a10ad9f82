//! Descriptors that take long to close, for somebody else to close.

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketType, sendmsg_addr, socket,
};
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Sends some to the datagram socket at `path`, and keeps none.
pub fn send(path: &str) {
    let to = SocketAddrUnix::new(path).expect("a path");
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None).expect("a socket");
    let pairs: Vec<_> = (0..4).map(|_| pair()).collect();
    let mut answers = Vec::new();
    for (turn, (lingers, peer)) in pairs.into_iter().enumerate() {
        // Whichever of a message the kernel closes first, its peer must still be there in one of
        // them.
        let both = [lingers.as_fd(), peer.as_fd()];
        let both = if turn % 2 == 0 { both } else { [both[1], both[0]] };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&both)));
        let words = [IoSlice::new(b"STATUS=lingering")];
        answers.push(sendmsg_addr(&socket, &to, &words, &mut control, SendFlags::empty()));
        // At once: the last one to close them is to be somebody else.
        drop((peer, lingers));
    }
    for answer in answers {
        match answer {
            Ok(_) => println!("sent"),
            Err(Errno::PERM) => println!("refused"),
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// A socket that wants to get rid of its data when it is closed, and one that never takes it.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut full = TcpStream::connect(listener.local_addr().expect("its number")).expect("itself");
    let (peer, _) = listener.accept().expect("itself");
    full.set_nonblocking(true).expect("a socket");
    let data = vec![0; 1 << 16];
    while full.write(&data).is_ok() {}
    set_socket_linger(&full, Some(Duration::from_secs(1000))).expect("to linger");
    (full, peer)
}
