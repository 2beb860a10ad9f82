//! The loopback interface of a new network namespace.

use super::{link, netlink};

/// Brings up the loopback interface of the calling thread's network namespace.
pub fn loopback_up() -> rustix::io::Result<()> {
    let mut batch = netlink::Batch::default();
    link::loopback_up(&mut batch);
    netlink::Socket::route()
        .and_then(|socket| socket.execute(&mut batch))
        .map_err(|refused| refused.errno)
}
