//! The configuration that makes systemd-networkd in a guest keep an interface as Holm configured
//! it, or ask the network for its configuration.

use std::fmt::Write;

use crate::record::{Lan, Network};

/// The names and texts of the systemd.network files of a guest's interfaces (systemd 247 and
/// newer).
pub fn networkd_units(network: &Network) -> Vec<(String, String)> {
    let unit = |(at, lan): (usize, &Lan)| {
        let name = network.lan_name(at);
        (format!("10-holm-{name}.network"), networkd_unit(network, lan, &name))
    };
    network.lan.iter().enumerate().map(unit).collect()
}

fn networkd_unit(network: &Network, lan: &Lan, name: &str) -> String {
    let mut text = format!(
        "# Written by Holm at every start.\n[Match]\nName={name}\n\n[Link]\nMTUBytes={}\n",
        lan.mtu
    );
    let is_beside = network.has_private_beside();
    if is_beside {
        text.push_str("RequiredForOnline=no\n");
    }
    text.push_str("\n[Network]\nDescription=Holm guest\n");
    if lan.settings.addresses.is_empty() {
        text.push_str("DHCP=yes\nIPv6AcceptRA=yes\n");
        if is_beside {
            // The default route is that of eth0.
            text.push_str("\n[DHCPv4]\nUseGateway=no\n\n[IPv6AcceptRA]\nUseGateway=no\n");
        }
        return text;
    }
    text.push_str("DHCP=no\nIPv6AcceptRA=no\nKeepConfiguration=yes\n");
    if !is_beside {
        for server in &network.dns {
            let _ = writeln!(text, "DNS={server}");
        }
    }
    for (address, length) in &lan.settings.addresses {
        let _ = write!(text, "\n[Address]\nAddress={address}/{length}\n");
    }
    for gateway in network.gateway.iter().filter(|gateway| lan.reaches(**gateway)) {
        let _ = write!(text, "\n[Route]\nGateway={gateway}\nGatewayOnLink=yes\n");
    }
    text
}
