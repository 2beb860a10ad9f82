use super::*;
use rustix::fs::{FileType, fstat};
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// A command on a pseudo-terminal of this machine, and what a relay makes of its output.
fn relayed(script: &str) -> (String, i32) {
    let (master, slave) = open(Path::new("/dev/ptmx")).unwrap();
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
    let (master, slave) = open(Path::new("/dev/ptmx")).unwrap();
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
