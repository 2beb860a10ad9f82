//! The trait that each mode of `net.mode` implements.

use std::os::fd::{BorrowedFd, OwnedFd};

use super::dns;
use super::error::Error;
use crate::config::Net;
use crate::record::Network;

/// What a mode does at each point of a guest's run. The default is to do nothing.
pub trait Mode {
    /// Whether the guest has its own network namespace; otherwise it shares the host's.
    fn has_own_namespace(&self) -> bool {
        true
    }

    /// Whether a veth pair connects the guest to the host. The ruleset protects such guests.
    fn has_veth(&self) -> bool {
        false
    }

    /// Completes a plan by what depends on the host, and checks it.
    fn complete(&self, _network: &mut Network, _settings: &Net) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the host's side, while the guest's init waits. Undoes itself if it fails.
    fn attach(&self, _network: &Network, _netns: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the guest's side, in the guest's network namespace. `proc` is the guest's.
    fn configure_inside(&self, _network: &Network, _proc: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the host's side is in this network namespace.
    fn is_attached(&self, _network: &Network) -> Result<bool, Error> {
        Ok(false)
    }

    /// Removes the host's side.
    fn detach(&self, _network: &Network) -> Result<(), Error> {
        Ok(())
    }

    /// Removes what does not disappear by itself when the guest's last process has ended.
    fn clean_up(&self, _network: &Network) -> Result<(), Error> {
        Ok(())
    }

    /// The boot files with the guest's network configuration.
    fn files(&self, network: &Network) -> Files {
        Files { resolv_conf: Some(dns::render(&network.dns)), networkd: Vec::new() }
    }

    /// By what the guest is answered that asks for its network.
    fn responder(&self, _network: &Network) -> Result<Option<Responder>, Error> {
        Ok(None)
    }
}

/// The sockets of a responder, which answers the guest's DHCP and `DHCPv6` requests and router
/// solicitations.
#[derive(Debug)]
pub struct Responder {
    /// The packet socket by which replies are sent.
    pub replies: OwnedFd,
    /// The netlink socket that tells requests. Without it the packet socket receives them, which
    /// takes time of all that the guest sends.
    pub requests: Option<OwnedFd>,
}

/// Boot files with a guest's network configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Text of /etc/resolv.conf.
    pub resolv_conf: Option<String>,
    /// Names and texts of systemd.network files for systemd-networkd.
    pub networkd: Vec<(String, String)>,
}
