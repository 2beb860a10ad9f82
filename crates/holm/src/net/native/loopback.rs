//! What is 127.0.0.0/24 and `::1` inside: addresses of the host's loopback interface that no other
//! guest has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;

use super::interface;
use crate::net::addresses::subnets;
use crate::net::error::Error;
use crate::net::request::Request;

/// `lo` has this index in every network namespace.
pub const LO: u32 = 1;
/// 127.0.0.0 to 127.3.255.255 stay the host's own.
const FIRST: u32 = 0x7f04_0000;

/// The last address of the last guest of the last instance.
pub const LAST: Ipv4Addr = Ipv4Addr::new(127, 115, 255, 255);

/// The guest's network of 256 addresses, 127.A.B.0: there are 1024 for each of the 27 instances.
pub fn network(instance: u8, context: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST + ((u32::from(instance) << 10 | context) << 8))
}

/// The address that stands for the guest's `::1`. It is within the subnet of the instance, above
/// all context ids.
pub fn address6(instance: u8, context: u32) -> Ipv6Addr {
    const ABOVE: u128 = 0xffff << 48;
    Ipv6Addr::from_bits(subnets(instance).1.to_bits() | ABOVE | u128::from(context))
}

/// Adds the address that stands for `::1`. Nothing is done on a host without IPv6.
pub fn add(address: Ipv6Addr) -> Result<(), Error> {
    with_ipv6(interface::add(Request::AddLoopbackV6, LO, IpAddr::V6(address)))
}

/// Removes it, if it is there.
pub fn remove(address: Ipv6Addr) -> Result<(), Error> {
    with_ipv6(interface::remove(Request::RemoveLoopbackV6, LO, IpAddr::V6(address)))
}

/// What was done, if the kernel has IPv6, and has it not disabled for all interfaces.
fn with_ipv6(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Kernel {
            errno: Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::ACCESS, ..
        }) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_guests_have_the_same() {
        assert_eq!(network(1, 1), Ipv4Addr::new(127, 8, 1, 0));
        assert_eq!(network(1, 1023), Ipv4Addr::new(127, 11, 255, 0));
        assert_eq!(network(2, 0), Ipv4Addr::new(127, 12, 0, 0));
        assert_eq!(network(27, 1023), Ipv4Addr::new(127, 115, 255, 0));
        assert_eq!(address6(3, 517), "fd00:686f:6c6d:3:ffff::205".parse::<Ipv6Addr>().unwrap());
    }
}
