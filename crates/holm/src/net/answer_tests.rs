use super::answer::*;

fn config() -> AnswerConfig {
    AnswerConfig {
        host_mac: [2, 0x68, 0x68, 1, 0, 9],
        guest_v4: [10, 97, 0, 9],
        gateway_v4: [169, 254, 1, 1],
        gateway_v6: [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        mtu: 1400,
        dns_v4: [[192, 0, 2, 53], [0; 4], [0; 4]],
        dns_v6: [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53], [0; 16], [0; 16]],
    }
}

#[test]
fn config_survives_its_text() {
    assert_eq!(AnswerConfig::from_text(&config().to_text()), Some(config()));
    assert_eq!(AnswerConfig::from_text(b"00"), None);
    assert_eq!(AnswerConfig::from_text(&[b'x'; TEXT_LENGTH]), None);
}
