use super::*;

#[test]
fn words_of_an_end_are_read_as_they_are_written() {
    for (text, how, adopted) in [
        ("exited 0", How::Exited(0), false),
        ("exited 3 adopted", How::Exited(3), true),
        ("killed 9", How::Killed(9), false),
        ("unknown adopted", How::Unknown, true),
    ] {
        let ended = Ended::parse(text).unwrap();
        assert_eq!(ended, Ended { how, adopted });
        assert_eq!(ended.to_string(), text);
    }
    for text in ["", "exited", "exited x", "exited 300", "killed", "unknown 1", "adopted"] {
        assert_eq!(Ended::parse(text), None, "{text:?}");
    }
}

#[test]
fn the_embedded_program_is_static_and_small() {
    assert_eq!(&IMAGE[..4], b"\x7fELF");
    // e_type: 2 is a program at fixed addresses.
    assert_eq!(IMAGE[16], 2);
    assert!(IMAGE.len() < 40 << 10, "{} bytes", IMAGE.len());
}
