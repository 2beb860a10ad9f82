//! `net.mode = "host"`: the host's network namespace.
//!
//! Nothing is made or removed, and no ruleset protects the guest. To the host's network namespace
//! guest root is an ordinary user, because the guest's user namespace does not own it: it can
//! change nothing there and bind no port below 1024.

use super::mode::Mode;

pub struct Host;

impl Mode for Host {
    fn has_own_namespace(&self) -> bool {
        false
    }
}
