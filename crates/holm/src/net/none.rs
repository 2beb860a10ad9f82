//! `net.mode = "none"`: a network namespace with nothing but loopback.

use super::mode::{Files, Mode};
use crate::record::Network;

pub struct NoNetwork;

impl Mode for NoNetwork {
    fn files(&self, _: &Network) -> Files {
        Files::default()
    }
}
