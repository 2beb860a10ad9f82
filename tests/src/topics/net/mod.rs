//! Networks with real traffic, most of them in network namespaces made for each test.

mod access;
mod departures;
mod flows;
mod lan;
mod managers;
mod names;
mod native;
mod ports;
mod reach;
mod requests;
mod rules;
mod shaping;
mod shared;
pub mod topology;
mod traffic;

use holm::config::{Net, Proto, Publish};

use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [
        access::TESTS,
        departures::TESTS,
        flows::TESTS,
        lan::TESTS,
        lan::frames::TESTS,
        reach::TESTS,
        names::TESTS,
        native::TESTS,
        native::arrival::TESTS,
        native::changes::TESTS,
        native::closed::TESTS,
        native::passing::TESTS,
        native::ports::TESTS,
        native::sharing::TESTS,
        native::unix::TESTS,
        ports::TESTS,
        rules::TESTS,
        requests::TESTS,
        managers::TESTS,
        shaping::TESTS,
        shared::TESTS,
        traffic::TESTS,
    ]
    .concat()
}

const TCP_80: &[(Option<&str>, u16, u16, Proto)] = &[(None, 8080, 80, Proto::Tcp)];

fn published(ports: &[(Option<&str>, u16, u16, Proto)]) -> Net {
    let publish = ports
        .iter()
        .map(|&(ip, host_port, guest_port, proto)| Publish {
            host_ip: ip.map(|ip| ip.parse().unwrap()),
            host_port,
            guest_port,
            proto,
        })
        .collect();
    Net { publish, ..Net::default() }
}
