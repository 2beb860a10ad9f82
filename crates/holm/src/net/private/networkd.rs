//! The configuration that makes systemd-networkd in a guest keep the interface as Holm configured
//! it. `NetworkManager` keeps an existing configuration anyway, and ifupdown ignores interfaces
//! that are not in its files.

use std::fmt::Write;

use crate::record::Network;

/// A systemd.network file for `eth0` (systemd 247 and newer) with the same addresses and routes,
/// and nothing else. It is a boot file, /run/systemd/network/10-holm.network; a file of that name
/// in /etc of the guest takes precedence.
pub fn networkd_unit(network: &Network) -> String {
    let v4 = network.guest_v4;
    let mut text = format!(
        "# Written by Holm at every start.\n\
         [Match]\nName=eth0\n\n\
         [Link]\nMTUBytes={}\n\n\
         [Network]\nDescription=Holm guest\nDHCP=no\nIPv6AcceptRA=no\n\
         IPv6DuplicateAddressDetection=0\nLLMNR=no\nMulticastDNS=no\nLLDP=no\n\
         KeepConfiguration=yes\n",
        network.mtu
    );
    for server in &network.dns {
        let _ = writeln!(text, "DNS={server}");
    }
    let _ = write!(
        text,
        "\n[Address]\nAddress={v4}/32\n\n\
         [Route]\nDestination={0}/32\nScope=link\n\n\
         [Route]\nGateway={0}\nGatewayOnLink=yes\n",
        network.gateway_v4
    );
    if let Some(v6) = network.guest_v6 {
        let _ = write!(
            text,
            "\n[Address]\nAddress={v6}/128\nDuplicateAddressDetection=none\n\n\
             [Route]\nGateway={}\nGatewayOnLink=yes\n",
            network.gateway_v6
        );
    }
    text
}
