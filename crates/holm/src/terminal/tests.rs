use super::escape_filter::EscapeFilter;
use super::*;
use rustix::fs::{FileType, fstat};
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// A command on a pseudo-terminal of this machine, and what a relay makes of its output.
fn relayed(script: &str) -> (String, i32) {
    let master = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap().into();
    let slave = slave(&master).unwrap();
    let stdio = || Stdio::from(slave.try_clone().unwrap());
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    drop(slave);
    let pid = rustix::process::Pid::from_child(&child);
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    let (mut reader, writer) = io::pipe().unwrap();
    let collect = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    let relay = Relay {
        master: master.as_fd(),
        command: pidfd.as_fd(),
        input: None,
        output: writer.as_fd(),
    };
    relay.run(&holm_sys::signal::Caught::all().unwrap()).unwrap();
    drop(writer);
    (collect.join().unwrap(), child.wait().unwrap().code().unwrap())
}

#[test]
fn a_pseudo_terminal_has_two_ends() {
    let master = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap().into();
    let slave = slave(&master).unwrap();
    for fd in [&master, &slave] {
        let mode = fstat(fd).unwrap().st_mode;
        assert_eq!(FileType::from_raw_mode(mode), FileType::CharacterDevice);
    }
    assert!(rustix::termios::isatty(&slave));
}

#[test]
fn a_relay_loses_nothing_that_was_written_before_the_end() {
    let (text, status) = relayed("seq 20000; exit 3");
    assert_eq!(status, 3);
    assert_eq!(text.lines().count(), 20000);
    assert!(text.ends_with("\r\n20000\r\n"));
}

#[test]
fn a_relay_ends_with_its_command_though_a_child_keeps_the_terminal() {
    let (text, status) = relayed("sleep 20 & echo done");
    assert_eq!((text.trim(), status), ("done", 0));
}

/// What a guest's bytes are on a terminal, at once and byte by byte.
fn shown(bytes: &[u8]) -> String {
    let mut filter = EscapeFilter::default();
    let at_once = [filter.take(bytes), filter.finish()].concat();
    let mut filter = EscapeFilter::default();
    let mut one_by_one: Vec<u8> = bytes.chunks(1).flat_map(|byte| filter.take(byte)).collect();
    one_by_one.extend(filter.finish());
    assert_eq!(at_once, one_by_one);
    String::from_utf8(at_once).unwrap()
}

#[test]
fn text_and_colours_reach_a_terminal() {
    for text in ["plain\ttext\n", "ä € 🦀 \u{301} \u{6cc}\u{200c}\n", ""] {
        assert_eq!(shown(text.as_bytes()), text);
    }
    assert_eq!(shown(b"line\r\r\nline\r\n"), "line\nline\n");
    assert_eq!(shown(b"\x1b[1;31mred\x1b[0m\r\n"), "\x1b[1;31mred\x1b[0m\n");
    assert_eq!(shown(b"\x1b[1;31mred\nnext"), "\x1b[1;31mred\x1b[0m\nnext");
    assert_eq!(shown(b"\x1b[38:5:1mred"), "\x1b[38:5:1mred\x1b[0m");
}

#[test]
fn commands_reach_no_terminal() {
    let cases: [(&[u8], &str); 12] = [
        (b"\x1b[2J\x1b[H", "^[[2J^[[H"),
        (b"\x1b]0;title\x07", "^[]0;title^G"),
        (b"\x1b[6n\x1bc", "^[[6n^[c"),
        (b"\x1b[>4;1m\x1b[?1m", "^[[>4;1m^[[?1m"),
        (b"over\rwritten\x08\x7f", "over^Mwritten^H^?"),
        (b"\x9b2J \xc2\x9b2J", "\\x9b2J \\xc2\\x9b2J"),
        (b"\xff\xe2\x82 cut", "\\xff\\xe2\\x82 cut"),
        (b"end \x1b[3", "end ^[[3"),
        (b"\x1b\x1b[31", "^[^[[31"),
        (b"\0\x0e", "^@^N"),
        ("user\u{202e}toor".as_bytes(), "user\\xe2\\x80\\xaetoor"),
        (
            "a\u{200b}b\u{feff}\u{e0041}".as_bytes(),
            "a\\xe2\\x80\\x8bb\\xef\\xbb\\xbf\\xf3\\xa0\\x81\\x81",
        ),
    ];
    for (bytes, text) in cases {
        assert_eq!(shown(bytes), text);
    }
    let long = [b"\x1b[".as_slice(), &b"1".repeat(100), b"m"].concat();
    assert!(shown(&long).starts_with("^[[111"));
}
