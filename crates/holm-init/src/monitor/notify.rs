//! What init says about itself (`sd_notify`).

use super::handoff::Handoff;
use super::timer::bounded;
use holm_proto::path::READY;
use rustix::fs::{XattrFlags, fsetxattr};
use rustix::net::{RecvFlags, recv};

/// Takes one datagram, which anybody in the guest may have sent; only `READY=1` means something.
pub fn receive(handoff: &Handoff) {
    let Some(socket) = &handoff.notify else { return };
    let mut datagram = [0; 1024];
    // Descriptors that came along are closed by this very call, and a socket of the guest's may linger.
    let received = bounded(|| recv(socket, &mut datagram[..], RecvFlags::DONTWAIT));
    let Ok((len, _)) = received else { return };
    if datagram[..len].split(|&byte| byte == b'\n').any(|line| line == b"READY=1") {
        let _ = fsetxattr(&handoff.cgroup, READY, b"1", XattrFlags::empty());
    }
}
