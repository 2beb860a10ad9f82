//! Sockets that one process makes and another has: passed by a Unix socket, and inherited.

use std::fs::{Permissions, set_permissions};
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType, recvmsg, sendmsg, sockopt,
};

use crate::native;

/// Sends a socket for each of `all`, such as tcp:0.0.0.0:80, to the process that [`take`]s them at
/// `path`, and waits until it has them; then this process has none.
pub fn hand_over(path: &str, all: &[&str]) {
    for at in all {
        let (protocol, address) = at.split_once(':').expect("a protocol");
        let socket: OwnedFd = match protocol {
            "tcp" => TcpListener::bind(address).expect("a free port").into(),
            _ => UdpSocket::bind(address).expect("a free port").into(),
        };
        let mut taker = UnixStream::connect(path).expect("somebody who takes it");
        let all = [socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&all)));
        sendmsg(&taker, &[IoSlice::new(b"!")], &mut control, SendFlags::empty()).expect("sent");
        taker.read_to_string(&mut String::new()).expect("its end");
    }
}

/// Takes sockets at `path`. A program of its own inherits each, and serves as `name`.
pub fn take(path: &str, name: &str) {
    let listener = UnixListener::bind(path).expect("a free path");
    set_permissions(path, Permissions::from_mode(0o777)).expect("its owner");
    println!("serving");
    let mut programs = Vec::new();
    for giver in listener.incoming() {
        let giver = giver.expect("somebody who gives");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        recvmsg(&giver, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC).expect("a message");
        let passed = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut all) => all.next(),
            _ => None,
        });
        let mut program = Command::new("/proc/self/exe");
        program.args(["inherited", name]).stdin(Stdio::from(passed.expect("a socket")));
        programs.push(program.spawn().expect("a program"));
    }
}

/// Serves as `name` at the socket that is this program's standard input.
pub fn serve_inherited(name: &str) {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a descriptor");
    match sockopt::socket_type(&socket) {
        Ok(SocketType::STREAM) => native::answer_tcp(socket.into(), name.to_owned()),
        Ok(_) => native::answer_udp(socket.into(), name.to_owned()),
        Err(error) => panic!("standard input: {error}"),
    }
    loop {
        std::thread::park();
    }
}
