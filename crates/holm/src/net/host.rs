//! `net.mode = "host"`: the host's network namespace.
//!
//! Nothing is made, guarded or removed. Seen from the host's stack guest root is an ordinary user: its
//! user namespace does not own the network namespace, so it changes nothing there and binds no port
//! below 1024.

use super::mode::Mode;

pub struct Host;

impl Mode for Host {
    fn has_own_namespace(&self) -> bool {
        false
    }
}
