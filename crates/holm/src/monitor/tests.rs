use super::client::{Message, input, size};
use super::console::Keys;
use super::logs::tail;
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

#[test]
fn messages_are_read_as_the_monitor_writes_them() {
    let ended = Ended { how: How::Killed(1), adopted: false };
    for (packet, message) in [
        (&b"h\x01"[..], Some(Message::Hello(true))),
        (b"h\0", Some(Message::Hello(false))),
        (b"oab", Some(Message::Output(b"ab"))),
        (b"o", Some(Message::Output(b""))),
        (b"xkilled 1", Some(Message::Ended(ended))),
        (b"xnonsense", None),
        (b"h", Some(Message::Other)),
        (b"?", Some(Message::Other)),
        (b"", None),
    ] {
        assert_eq!(Message::parse(packet), message, "{packet:?}");
    }
    assert_eq!(input(b"ls\n"), b"ils\n");
    assert_eq!(size(24, 0x0150), b"w\x18\0\x50\x01");
}

#[test]
fn the_keys_that_leave_are_found_across_reads() {
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
fn the_command_line_of_init_says_how_long_each_service_is() {
    let strings = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
    let web = strings(&["httpd", "-f", "--"]);
    let service = InitService { name: "web", command: &web, restart: "always" };
    let args = init_args(&[], &[service]);
    assert_eq!(args, strings(&["init", "--service", "web", "always", "3", "httpd", "-f", "--"]));
    let command = strings(&["sh", "--service"]);
    assert_eq!(init_args(&command, &[]), strings(&["init", "--", "sh", "--service"]));
    assert_eq!(init_args(&[], &[]), ["init"]);
}

#[test]
fn a_log_is_followed_across_its_turn() {
    let dir = std::env::temp_dir().join(format!("holm-logs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("log"), "1\n2\n").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let folder = dir.clone();
    let following = std::thread::spawn(move || {
        let output = std::os::fd::AsFd::as_fd(&writer);
        Logs { folder: &folder, lines: Some(1), follow: Some(&|| true), output }.run()
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
