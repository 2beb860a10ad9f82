//! Messages of init (`sd_notify(3)`).

use super::guest::Guest;
use super::timer::bounded;
use holm_proto::path::{READY, STATUS, STATUS_MAX};
use rustix::fs::{XattrFlags, fsetxattr};
use rustix::net::{RecvFlags, recv};

/// Takes one datagram, which anybody in the guest may have sent; only `READY=1` and `STATUS=` mean
/// something.
pub fn receive(guest: &Guest) {
    let Some(socket) = &guest.notify else { return };
    let mut datagram = [0; 1024];
    // This call closes descriptors that came along, and closing a socket of the guest's may block.
    let received = bounded(|| recv(socket, &mut datagram[..], RecvFlags::DONTWAIT));
    let Ok((len, _)) = received else { return };
    let (mut ready, mut status) = (false, None);
    for line in datagram[..len].split(|&byte| byte == b'\n') {
        ready |= line == b"READY=1";
        status = line.strip_prefix(b"STATUS=").or(status);
    }
    // Two writes at most, however many lines there are: the guest does not pay for them.
    if ready {
        let _ = fsetxattr(&guest.cgroup, READY, b"1", XattrFlags::empty());
    }
    if let Some(text) = status {
        let text = &text[..text.len().min(STATUS_MAX)];
        let _ = fsetxattr(&guest.cgroup, STATUS, text, XattrFlags::empty());
    }
}
