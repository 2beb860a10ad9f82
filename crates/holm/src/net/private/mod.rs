//! `net.mode = "private"`: a network namespace of its own, a routed veth pair, the ruleset, published
//! ports.
//!
//! What has to outlive a command is kept by the kernel with the veth pair: its group says that it is a
//! guest's and whether other guests may talk to it, its alias holds the published ports. So the
//! nftables table can be thrown away at any time and made again from the interfaces.

mod attach;
mod elements;
mod foreign;
mod forwarding;
mod lease;
mod networkd;
mod ruleset;
mod settle;
mod table;
mod veth;

use std::os::fd::{BorrowedFd, OwnedFd};

pub use attach::{destroy, detach, has_rules, leftovers, restore_rules};
pub use foreign::{Blocker, blockers};

use super::dns;
use super::error::Error;
use super::mode::{Files, Mode};
use crate::config::Net;
use crate::record::Network;

pub struct Private;

impl Mode for Private {
    fn has_veth(&self) -> bool {
        true
    }

    fn settle(&self, network: &mut Network, settings: &Net) -> Result<(), Error> {
        settle::settle(network, settings)
    }

    fn attach(&self, network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
        attach::attach(network, netns)
    }

    fn configure_inside(&self, network: &Network) -> Result<(), Error> {
        attach::configure_inside(network)
    }

    fn is_attached(&self, network: &Network) -> Result<bool, Error> {
        attach::is_attached(network)
    }

    fn detach(&self, network: &Network) -> Result<(), Error> {
        detach(network.instance, network.context)
    }

    fn end(&self, network: &Network) -> Result<(), Error> {
        attach::unpublish(network)
    }

    fn files(&self, network: &Network) -> Files {
        Files {
            resolv_conf: Some(dns::render(&network.dns)),
            networkd: Some(networkd::networkd_unit(network)),
        }
    }

    fn responder(&self, network: &Network) -> Result<Option<OwnedFd>, Error> {
        holm_sys::packet::listen(network.host_index())
            .map(Some)
            .map_err(|source| Error::Responder { interface: network.host_if.clone(), source })
    }
}
