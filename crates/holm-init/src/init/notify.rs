//! Telling the monitor how the guest is (`sd_notify(3)`).

use holm_sys::bare::Args;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{sendto, socket_with};

/// Sends `message`, as `READY=1`, to the socket that `NOTIFY_SOCKET` names, if it does.
pub fn notify(message: &[u8]) {
    let Some(path) = Args::env(c"NOTIFY_SOCKET") else { return };
    let address = match path.to_bytes() {
        [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name),
        _ => SocketAddrUnix::new(path),
    };
    let Ok(address) = address else { return };
    let kind = (AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC);
    if let Ok(socket) = socket_with(kind.0, kind.1, kind.2, None) {
        // A monitor that is gone or busy must not hold up the guest.
        let _ = sendto(&socket, message, SendFlags::DONTWAIT, &address);
    }
}
