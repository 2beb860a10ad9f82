//! Messages of init (`sd_notify(3)`).

use super::guest::Guest;
use super::timer::bounded;
use holm_proto::path::READY;
use rustix::fs::{XattrFlags, fsetxattr};
use rustix::net::{RecvFlags, recv};

/// Takes one datagram, which anybody in the guest may have sent; only `READY=1` means something.
pub fn receive(guest: &Guest) {
    let Some(socket) = &guest.notify else { return };
    let mut datagram = [0; 1024];
    // This call closes descriptors that came along, and closing a socket of the guest's may block.
    let received = bounded(|| recv(socket, &mut datagram[..], RecvFlags::DONTWAIT));
    let Ok((len, _)) = received else { return };
    if datagram[..len].split(|&byte| byte == b'\n').any(|line| line == b"READY=1") {
        let _ = fsetxattr(&guest.cgroup, READY, b"1", XattrFlags::empty());
    }
}
