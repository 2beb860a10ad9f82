//! `net.mode = "none"`: a network namespace that has only loopback.

use super::mode::{Files, Mode};
use crate::record::Network;

pub struct NoNetwork;

impl Mode for NoNetwork {
    fn files(&self, _: &Network) -> Files {
        Files::default()
    }
}
