//! `net.mode = "none"`: a network namespace with nothing but loopback.

use super::mode::{Files, Mode};
use crate::record::Network;

pub struct None;

impl Mode for None {
    fn files(&self, _: &Network) -> Files {
        Files::default()
    }
}
