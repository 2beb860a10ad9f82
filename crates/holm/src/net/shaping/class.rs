//! The classes: which is whose, and their parameters.

use crate::record::Shaping;

/// The handle of HTB, whose major number is also that of its classes.
pub const HTB: u32 = 0x486d_0000;
/// That of mq where departure times are used; see `departures`.
pub const DEPARTURES: u32 = 0x486e_0000;
/// The class of the link.
pub const LINK: u32 = HTB | 1;
/// The class of what is no guest's.
pub const HOST: u32 = HTB | 2;

/// The share of a guest that has only `net.cap`, and of the host.
const SHARE_DEFAULT: u32 = 100;
/// Nobody is kept from sending at all, and a class needs a rate: bits in a second.
const RATE_MIN: u64 = 8000;
/// The ceiling of a guest without a cap, above all links: it sends what the link has.
const NO_CAP: u64 = 1_000_000_000_000;

/// The class of a guest. `egress` in packets.bpf.c knows it too.
pub fn class_id(instance: u8, context: u32) -> u32 {
    HTB | u32::from(instance) << 10 | context & 0x3ff
}

/// The instance of a guest's class; 0 of the others.
pub fn instance_of(class: u32) -> u8 {
    u8::try_from((class & 0xffff) >> 10).unwrap_or_default()
}

/// The context id of a guest's class.
pub fn context_of(class: u32) -> u32 {
    class & 0x3ff
}

/// What is reserved for the host, of a link with this rate: guests never keep its administrator
/// from reaching it. Bits in a second.
pub fn of_host(link: u64) -> u64 {
    link / 20
}

/// The parameters of a class. Rates are bits in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    pub rate: u64,
    pub ceil: u64,
    /// Bytes that it sends in its turn, of what is not reserved.
    pub quantum: u32,
}

impl Parameters {
    /// Those of the link.
    pub fn link(rate: u64) -> Self {
        Self { rate, ceil: rate, quantum: quantum(SHARE_DEFAULT, rate) }
    }

    /// Those of the host's class.
    pub fn host(link: u64) -> Self {
        Self { rate: of_host(link), ceil: NO_CAP, quantum: quantum(SHARE_DEFAULT, link) }
    }

    /// Those of a guest's class.
    pub fn guest(shaping: &Shaping) -> Self {
        let rate = shaping.reserve.unwrap_or(RATE_MIN);
        let (ceil, share) = match (shaping.share, shaping.reserve) {
            // A reservation without a share is capped.
            (None, Some(_)) => (rate, 1),
            (share, _) => (shaping.cap.unwrap_or(NO_CAP), share.unwrap_or(SHARE_DEFAULT)),
        };
        Self { rate, ceil, quantum: quantum(share, shaping.uplink_rate) }
    }

    /// The reservation in a class's rate.
    pub fn reserve(rate: u64) -> u64 {
        if rate == RATE_MIN { 0 } else { rate }
    }
}

/// The longest packet on a link that [`splits`] them, in bytes: the longest Ethernet frame.
pub const PACKET_MAX: u32 = 9216;

/// Whether packets of a link with this rate, in bits in a second, are split before they wait. TCP
/// makes some of tens of KiB where the round-trip time is short, on slow links too
/// (`tcp_tso_rtt_log`). The kernel's own CAKE has the same limit.
pub fn splits(link: u64) -> bool {
    link < 1_000_000_000
}

/// How much a class sends in its turn, in bytes. It sends at least one packet: shares come out
/// equal if turns are shorter. If they are much longer, the turns of the others last so long that a
/// connection has too little on its way to use its own.
fn quantum(share: u32, link: u64) -> u32 {
    share * if splits(link) { PACKET_MAX / 100 } else { 600 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaping(reserve: Option<u64>, share: Option<u32>, cap: Option<u64>) -> Shaping {
        let (uplink, uplink_name, uplink_rate) = (2, "eth0".to_owned(), 100_000_000);
        Shaping { uplink, uplink_name, uplink_rate, reserve, share, cap }
    }

    #[test]
    fn a_class_tells_its_guest() {
        for (instance, context) in [(1, 1), (3, 517), (27, 1023)] {
            let class = class_id(instance, context);
            assert_eq!((instance_of(class), context_of(class)), (instance, context));
            assert!(class > HOST && class & 0xffff_0000 == HTB);
        }
        assert_eq!((instance_of(LINK), instance_of(HOST)), (0, 0));
    }

    #[test]
    fn the_words_of_the_paper() {
        let of = |reserve, share, cap| {
            let Parameters { rate, ceil, .. } = Parameters::guest(&shaping(reserve, share, cap));
            (rate, ceil)
        };
        assert_eq!(of(Some(5_000_000), None, None), (5_000_000, 5_000_000), "capped");
        assert_eq!(of(Some(5_000_000), Some(50), None), (5_000_000, NO_CAP), "work-conserving");
        assert_eq!(of(None, Some(50), None), (RATE_MIN, NO_CAP), "fair best effort");
        assert_eq!(of(None, None, Some(9_000_000)), (RATE_MIN, 9_000_000), "a cap alone");
        assert_eq!(of(Some(5_000_000), Some(50), Some(9_000_000)), (5_000_000, 9_000_000));
    }
}
