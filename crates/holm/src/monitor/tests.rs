use super::console::Keys;
use super::logs::tail;
use super::*;

#[test]
fn the_embedded_program_is_static_and_small() {
    assert_eq!(&IMAGE[..4], b"\x7fELF");
    // e_type: 2 is a program at fixed addresses.
    assert_eq!(IMAGE[16], 2);
    assert!(IMAGE.len() < 40 << 10, "{} bytes", IMAGE.len());
}

#[test]
fn the_keys_that_detach_are_found_across_reads() {
    let mut keys = Keys::new(true);
    assert_eq!(keys.take(b"ls\n"), (b"ls\n".to_vec(), false));
    assert_eq!(keys.take(b"a\x1d"), (b"a".to_vec(), false));
    assert_eq!(keys.take(b"\x1db"), (b"\x1db".to_vec(), false));
    assert_eq!(keys.take(b"\x1dx"), (b"\x1dx".to_vec(), false));
    assert_eq!(keys.take(b"q\x1dqrest"), (b"q".to_vec(), true));
    let mut pipe = Keys::new(false);
    assert_eq!(pipe.take(b"\x1dq"), (b"\x1dq".to_vec(), false));
}

#[test]
fn the_tail_of_a_log_is_whole_lines() {
    for (text, lines, wanted) in [
        ("a\nb\nc\n", Some(2), "b\nc\n"),
        ("a\nb\nc", Some(2), "b\nc"),
        ("a\nb\n", Some(5), "a\nb\n"),
        ("a\nb\n", Some(0), ""),
        ("a\n\n", Some(1), "\n"),
        ("", Some(3), ""),
        ("a\nb\n", None, "a\nb\n"),
    ] {
        assert_eq!(tail(text.as_bytes(), lines), wanted.as_bytes(), "{text:?} {lines:?}");
    }
}

#[test]
fn a_log_is_followed_across_its_rotation() {
    let dir = std::env::temp_dir().join(format!("holm-logs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("log"), "1\n2\n").unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let directory = dir.clone();
    let following = std::thread::spawn(move || {
        let logs = Logs { directory: &directory, lines: Some(1), follow_while: Some(&|| true) };
        logs.write(&mut writer)
    });
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "2");
    let append = |text: &str| {
        let mut log = std::fs::File::options().append(true).create(true).open(dir.join("log"));
        std::io::Write::write_all(log.as_mut().unwrap(), text.as_bytes()).unwrap();
    };
    append("3\n");
    assert_eq!(next(), "3");
    append("4\n");
    std::fs::rename(dir.join("log"), dir.join("log.1")).unwrap();
    append("5\n");
    assert_eq!((next(), next()), ("4".into(), "5".into()));
    std::fs::remove_dir_all(&dir).unwrap();
    following.join().unwrap().unwrap();
}
