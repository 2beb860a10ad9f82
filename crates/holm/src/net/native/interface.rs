//! Addresses that the host has only while a native guest runs.

use std::net::IpAddr;

use rustix::io::Errno;

use crate::net::error::Error;
use crate::net::netlink::{Batch, Refused, Socket};
use crate::net::request::Request;
use crate::net::route;

/// Adds an address to the interface with this index.
pub fn add(request: Request, interface: u32, address: IpAddr) -> Result<(), Error> {
    let mut batch = Batch::default();
    route::add_native_address(&mut batch, request, interface, address);
    match Socket::route()?.execute(&mut batch) {
        // A start that was killed has left it.
        Err(Refused { errno: Errno::EXIST, .. }) => Ok(()),
        added => Ok(added?),
    }
}

/// Removes it, if it is there.
pub fn remove(request: Request, interface: u32, address: IpAddr) -> Result<(), Error> {
    let mut batch = Batch::default();
    route::remove_native_address(&mut batch, request, interface, address);
    match Socket::route()?.execute(&mut batch) {
        // Somebody else has removed it, or the interface.
        Err(Refused { errno: Errno::ADDRNOTAVAIL | Errno::NODEV, .. }) => Ok(()),
        removed => Ok(removed?),
    }
}
