//! Questions are frames captured from busybox 1.35's udhcpc and from a kernel's router
//! solicitation.

use super::REPLY_MAX;
use holm_proto::Lease;

const DISCOVER: &str = "ffffffffffff02686701000908004500014800000000401179a600000000ffffffff0044004301347b77010106009ca0a10c0000000000000000000000000000000000000000026867010009";
/// From the cookie on; before it are 10 bytes of hardware address and 192 of names, all zero.
const DISCOVER_OPTIONS: &str =
    "638253633501013902024037080103060c0f1c2a793c0c756468637020312e33352e303d0701026867010009ff";
const SOLICITATION: &str = "33330000000202686701000986dd6000000000103afffe80000000000000006867fffe010009ff0200000000000000000000000000028500aa49000000000101026867010009";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn dhcp(options: &[u8]) -> Vec<u8> {
    let mut frame = bytes(DISCOVER);
    frame.resize(frame.len() + 10 + 192, 0);
    [frame, options.to_vec()].concat()
}

/// A DHCP message of a type, with more options.
fn message(kind: u8, more: &[u8]) -> Vec<u8> {
    dhcp(&[&bytes("63825363")[..], &[53, 1, kind], more, &[255]].concat())
}

fn lease() -> Lease {
    Lease {
        host_mac: [2, 0x68, 0x68, 1, 0, 9],
        guest_v4: [10, 97, 0, 9],
        gateway_v4: [169, 254, 1, 1],
        guest_v6: [0xfd, 0, 0x68, 0x6f, 0x6c, 0x6d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9],
        gateway_v6: [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        mtu: 1400,
        dns_v4: [[192, 0, 2, 53], [192, 0, 2, 54], [0; 4]],
        dns_v6: [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53], [0; 16], [0; 16]],
    }
}

fn ask(frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = [0; REPLY_MAX];
    super::reply(frame, &lease(), &mut out).map(|length| out[..length].to_vec())
}

fn option(frame: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = &frame[14 + 20 + 8 + 240..];
    while let [code, length, tail @ ..] = rest {
        let (value, tail) = tail.split_at(usize::from(*length));
        if *code == wanted {
            return Some(value);
        }
        rest = tail;
        if rest.first() == Some(&255) {
            break;
        }
    }
    None
}

fn internet_sum(bytes: &[u8], start: u32) -> u16 {
    let mut total = start;
    for pair in bytes.chunks(2) {
        total += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    u16::try_from(total).unwrap()
}

#[test]
fn discover_gets_an_offer() {
    let offer = ask(&dhcp(&bytes(DISCOVER_OPTIONS))).unwrap();
    assert_eq!(offer[..6], [0xff; 6], "a client without an address hears broadcasts");
    assert_eq!(internet_sum(&offer[14..34], 0), 0xffff, "IPv4 header checksum");
    assert_eq!(usize::from(u16::from_be_bytes([offer[16], offer[17]])), offer.len() - 14);
    let bootp = &offer[42..];
    assert_eq!(bootp[4..8], bytes("9ca0a10c"), "transaction");
    assert_eq!(bootp[16..20], [10, 97, 0, 9]);
    assert_eq!(bootp[28..34], bytes("026867010009"), "client's hardware address");
    for (code, value) in [
        (53, "02"),
        (54, "a9fe0101"),
        (51, "ffffffff"),
        (1, "ffffffff"),
        (3, "a9fe0101"),
        (121, "20a9fe01010000000000a9fe0101"),
        (26, "0578"),
        (6, "c0000235c0000236"),
        (61, "01026867010009"),
    ] {
        assert_eq!(option(&offer, code).map(<[u8]>::to_vec), Some(bytes(value)), "option {code}");
    }
}

#[test]
fn requests_are_acknowledged_or_refused() {
    let kind = |frame: &[u8]| ask(frame).map(|reply| option(&reply, 53).unwrap()[0]);
    assert_eq!(kind(&message(3, &[50, 4, 10, 97, 0, 9])), Some(5), "the guest's address");
    assert_eq!(kind(&message(3, &[50, 4, 10, 97, 0, 8])), Some(6), "another one");
    assert_eq!(kind(&message(3, &[54, 4, 192, 0, 2, 1])), None, "another server was chosen");
    assert_eq!(kind(&message(7, &[])), None, "a release");
    let mut renewal = message(3, &[]);
    renewal[14 + 28 + 12..14 + 28 + 16].copy_from_slice(&[10, 97, 0, 9]);
    let reply = ask(&renewal).unwrap();
    assert_eq!(option(&reply, 53), Some(&[5][..]));
    assert_eq!(reply[..6], bytes("026867010009"), "a client with an address is answered there");
    assert_eq!(reply[30..34], [10, 97, 0, 9]);
    let reply = ask(&message(8, &[])).unwrap();
    assert_eq!(
        (option(&reply, 53), option(&reply, 51)),
        (Some(&[5][..]), None),
        "inform: no lease"
    );
    assert_eq!(reply[42 + 16..42 + 20], [0; 4]);
}

/// 0xffff when the checksum of an IPv6 frame's body is right.
fn checksum_of(frame: &[u8]) -> u16 {
    let body = &frame[54..];
    let length = u32::try_from(body.len()).unwrap();
    let start = u32::from(frame[20]) + length + u32::from(internet_sum(&frame[22..54], 0));
    internet_sum(body, start)
}

#[test]
fn solicitation_gets_an_advertisement() {
    let reply = ask(&bytes(SOLICITATION)).unwrap();
    assert_eq!(reply[..6], bytes("026867010009"));
    assert_eq!(reply[21], 255, "hop limit");
    assert_eq!(reply[22..38], lease().gateway_v6);
    assert_eq!(reply[38..54], bytes(SOLICITATION)[22..38]);
    let body = &reply[54..];
    assert_eq!((body[0], body[5], body[6], body[7]), (134, 0x80, 0xff, 0xff));
    assert_eq!(checksum_of(&reply), 0xffff);
    let mut options = &body[16..];
    let mut seen = Vec::new();
    while let [kind, units, ..] = options {
        seen.push(*kind);
        options = &options[usize::from(*units) * 8..];
    }
    assert_eq!(seen, [1, 5, 24, 25], "link address, MTU, route, name servers; no prefix");
}

#[test]
fn without_an_ipv6_gateway_there_is_no_advertisement() {
    let lease = Lease { gateway_v6: [0; 16], ..lease() };
    assert_eq!(super::reply(&bytes(SOLICITATION), &lease, &mut [0; REPLY_MAX]), None);
    assert_eq!(super::reply(&message6(1, &[]), &lease, &mut [0; REPLY_MAX]), None);
}

/// A `DHCPv6` message of a type, with options.
fn message6(kind: u8, options: &[u8]) -> Vec<u8> {
    let head = "33330001000202686701000986dd60000000000011fffe80000000000000006867fffe010009ff0200000000000000000000000100020222022300000000";
    [&bytes(head), &[kind, 1, 2, 3][..], options].concat()
}

fn option6(reply: &[u8], wanted: u8) -> Option<Vec<u8>> {
    let mut rest = &reply[66..];
    while let [_, code, _, length, tail @ ..] = rest {
        let (value, tail) = tail.split_at(usize::from(*length));
        if *code == wanted {
            return Some(value.to_vec());
        }
        rest = tail;
    }
    None
}

const CLIENT: &str = "0001000a00030001026867010009";
const GROUP: &str = "0003000c0000002a0000000000000000";

#[test]
fn dhcp6_gives_the_one_address() {
    let asked = [bytes(CLIENT), bytes(GROUP)].concat();
    for (kind, answered) in [(1, 2), (3, 7), (5, 7), (6, 7)] {
        let reply = ask(&message6(kind, &asked)).unwrap();
        assert_eq!(reply[..6], bytes("026867010009"));
        assert_eq!(reply[22..38], lease().gateway_v6);
        assert_eq!(reply[54..58], bytes("02230222"), "ports");
        assert_eq!(usize::from(u16::from_be_bytes([reply[58], reply[59]])), reply.len() - 54);
        assert_eq!(checksum_of(&reply), 0xffff);
        assert_eq!(reply[62..66], [answered, 1, 2, 3], "type and transaction");
        assert_eq!(option6(&reply, 1), Some(bytes("00030001026867010009")));
        assert_eq!(option6(&reply, 2), Some(bytes("00030001026868010009")));
        let group = option6(&reply, 3).unwrap();
        assert_eq!(group[..12], bytes("0000002affffffffffffffff"));
        assert_eq!(group[12..16], bytes("00050018"));
        assert_eq!(group[16..32], lease().guest_v6);
        assert_eq!(option6(&reply, 23), Some(lease().dns_v6[0].to_vec()));
    }
    let reply = ask(&message6(11, &bytes(CLIENT))).unwrap();
    assert_eq!((option6(&reply, 3), option6(&reply, 23).map(|dns| dns.len())), (None, Some(16)));
    let of_another = [&asked[..], &bytes("0002000a00030001ffffffffffff")].concat();
    assert_eq!(ask(&message6(3, &of_another)), None, "another server was chosen");
    assert_eq!(ask(&message6(8, &asked)), None, "a release");
}

/// Every frame cut short, with every byte changed, and with the longest options, ends well.
#[test]
fn nothing_in_a_frame_harms() {
    let long = message(1, &[&[61, 255][..], &[7; 255], &[12, 255], &[1; 255]].concat());
    let reply = ask(&long).unwrap();
    assert_eq!(option(&reply, 61).unwrap(), [7; 255]);
    let unended = dhcp(&bytes("63825363350101ffff"));
    let six = message6(1, &[bytes(CLIENT), bytes(GROUP)].concat());
    for frame in [dhcp(&bytes(DISCOVER_OPTIONS)), bytes(SOLICITATION), six, long, unended] {
        for length in 0..frame.len() {
            let _ = ask(&frame[..length]);
        }
        for at in 0..frame.len() {
            for value in [0, 1, 0x0f, 0x45, 0x7f, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                let _ = ask(&changed);
            }
        }
        for room in 0..400 {
            if let Some(length) = super::reply(&frame, &lease(), &mut vec![0; room]) {
                assert!(length <= room);
            }
        }
    }
}
