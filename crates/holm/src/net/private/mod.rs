//! `net.mode = "private"`: the guest has its own network namespace, a routed veth pair, and
//! published ports; the ruleset protects it.
//!
//! All state is in the kernel, on the host's end of the veth pair: its group says whether the guest
//! reaches other guests, its alias stores the published ports. So the nftables table can be deleted
//! at any time and be made again from the interfaces.

mod attach;
mod complete;
mod elements;
mod foreign_chains;
mod forwarding;
mod lease;
mod networkd;
mod recorded;
mod requests;
mod ruleset;
mod table;
mod taken;
pub mod to_native;
mod traffic;
mod veth;

use std::os::fd::BorrowedFd;

pub use attach::{
    attached_contexts, destroy, detach, has_ruleset, interfaces, reshape, restore_ruleset,
};
pub use complete::check_not_hosts;
#[cfg(feature = "fuzzing")]
pub use foreign_chains::dropping_chains;
pub use foreign_chains::{Blocker, Hook, blockers};
pub use traffic::traffic;

use super::dns;
use super::error::Error;
use super::mode::{Files, Mode, Responder};
use crate::config::Net;
use crate::record::Network;

pub struct Private;

impl Mode for Private {
    fn has_veth(&self) -> bool {
        true
    }

    fn complete(&self, network: &mut Network, settings: &Net) -> Result<(), Error> {
        complete::complete(network, settings)
    }

    fn attach(&self, network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
        attach::attach(network, netns)
    }

    fn configure_inside(&self, network: &Network, proc: BorrowedFd<'_>) -> Result<(), Error> {
        attach::configure_inside(network, proc)
    }

    fn is_attached(&self, network: &Network) -> Result<bool, Error> {
        attach::is_attached(network)
    }

    fn detach(&self, network: &Network) -> Result<(), Error> {
        detach(network.instance, network.context)
    }

    fn clean_up(&self, network: &Network) -> Result<(), Error> {
        attach::unpublish(network)
    }

    fn files(&self, network: &Network) -> Files {
        Files {
            resolv_conf: Some(dns::render(&network.dns)),
            networkd: vec![("10-holm.network".to_owned(), networkd::networkd_unit(network))],
        }
    }

    fn responder(&self, network: &Network) -> Result<Option<Responder>, Error> {
        let requests = requests::listen(network)?;
        let receives = requests.is_none();
        let replies = holm_sys::packet::open(network.host_index(), receives)
            .map_err(|source| Error::Responder { interface: network.host_if.clone(), source })?;
        Ok(Some(Responder { replies, requests }))
    }
}
