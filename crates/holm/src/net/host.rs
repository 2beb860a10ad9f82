//! `net.mode = "host"`: the host's network namespace.
//!
//! Nothing is made or removed, and no ruleset protects the guest. Guest root is an ordinary user
//! there, because the guest's user namespace does not own the host's network namespace: it cannot
//! change interfaces or bind ports below 1024.

use super::mode::Mode;

pub struct Host;

impl Mode for Host {
    fn has_own_namespace(&self) -> bool {
        false
    }
}
