//! Addresses of one host.

use std::net::IpAddr;

use crate::config::units::Parsed;

/// An address that one host can have.
pub(in crate::config) fn address(text: &str) -> Parsed<IpAddr> {
    let address: IpAddr = text.parse().map_err(|_| format!("{text:?} is not an IP address"))?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!("{text} is not the address of a single host"));
    }
    Ok(address)
}
