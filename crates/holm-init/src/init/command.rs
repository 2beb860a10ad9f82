//! What init is to run, and starting it.

use super::service::Services;
use core::ffi::CStr;
use holm_proto::init::Part;
use holm_sys::bare::{self, Args, stderr, stdin};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::stdio::dup2_stdin;

/// What init's command line says.
pub struct Command {
    pub main: Option<Args>,
    pub services: Services,
}

impl Command {
    pub fn parse(args: Args) -> Option<Command> {
        let mut command = Command { main: None, services: Services::default() };
        let mut at = 1;
        while at < args.len() {
            match Part::parse(at, |at| args.get(at).map(CStr::to_bytes))? {
                Part::Service { restart, first, count } => {
                    let run = args.slice(first, count);
                    command.services.add(run, restart)?;
                    at = first + run.len();
                }
                Part::Command { first } => {
                    command.main = Some(args.slice(first, usize::MAX));
                    break;
                }
            }
        }
        Some(command)
    }
}

/// Starts `args` as the leader of a session, with the console as its terminal or nothing to read.
pub fn start(args: Args, terminal: bool) -> Option<i32> {
    let child = bare::spawn(move || {
        bare::release_all();
        let _ = setsid();
        if terminal {
            // No terminal, no controlling terminal.
            let _ = ioctl_tiocsctty(stdin());
        } else if let Ok(null) = open(c"/dev/null", OFlags::RDWR, Mode::empty()) {
            let _ = dup2_stdin(&null);
        }
        let error = bare::exec_argv(args);
        let name = args.get(0).unwrap_or(c"").to_bytes();
        let (why, status): (&[u8], i32) = match error {
            Errno::NOENT => (b"not found", 127),
            Errno::ACCESS => (b"not permitted to execute it", 126),
            Errno::NOEXEC => (b"not a program for this machine", 126),
            _ => (b"cannot be executed", 126),
        };
        complain(&[name, b": ", why]);
        status
    });
    if child.is_err() {
        complain(&[b"cannot start a process: the guest's limit is reached or memory is short"]);
    }
    child.ok()
}

/// Says something on the guest's console.
pub fn complain(words: &[&[u8]]) {
    // Where the console is gone there is nobody to tell.
    let _ = write(stderr(), b"holm-init: ");
    for word in words {
        let _ = write(stderr(), word);
    }
    let _ = write(stderr(), b"\r\n");
}
