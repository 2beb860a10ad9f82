//! `net.mode = "none"`: a network namespace that has only loopback, and what `net.lan` adds.

use super::dns;
use super::mode::{Files, Mode};
use crate::record::Network;

pub struct NoNetwork;

impl Mode for NoNetwork {
    fn files(&self, network: &Network) -> Files {
        let has_servers = !network.dns.is_empty();
        Files { resolv_conf: has_servers.then(|| dns::render(&network.dns)), ..Files::default() }
    }
}
