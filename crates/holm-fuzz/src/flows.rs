//! What the kernel tells a monitor of the packets of its guest.

use holm_init::flows::connections;
use holm_proto::Flow;

/// A datagram. Each connection is read from its record as it was written.
pub fn flows(datagram: &[u8]) -> bool {
    const AT: u64 = 1_790_000_000;
    let mut accepted = false;
    connections(datagram, AT, |flow| {
        assert!(matches!(flow, Flow::Opened { at: AT, .. }));
        assert_eq!(Flow::from_bytes(&flow.to_bytes()), Some(flow));
        accepted = true;
    });
    accepted
}
