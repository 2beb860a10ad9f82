//! A command on a terminal of its own, as if a person used it.

use crate::sandbox::Sandbox;
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A new terminal of this machine: its master and its slave.
pub fn open() -> (OwnedFd, OwnedFd) {
    let ptmx = File::options().read(true).write(true).open("/dev/ptmx");
    let master = OwnedFd::from(ptmx.expect("this host has terminals"));
    let slave = holm::terminal::slave(&master).expect("its other end");
    (master, slave)
}

#[derive(Debug)]
pub struct Terminal {
    master: File,
    slave: OwnedFd,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts `command` on a new terminal, which controls it: keys and sizes become signals as they
    /// do for a person.
    pub fn start(command: &Command) -> Self {
        let (master, slave) = open();
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                session.env(name, value);
            }
        }
        let stdio = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let child =
            session.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().expect("util-linux");
        let master = File::from(master);
        let shown = Arc::default();
        follow(master.try_clone().expect("a descriptor"), Arc::clone(&shown));
        Self { master, slave, child, shown }
    }

    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("keys");
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).expect("a size");
    }

    /// All that was shown so far.
    pub fn text(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }

    #[track_caller]
    pub fn wait_for(&self, sandbox: &Sandbox, text: &str) {
        sandbox.wait_for(&format!("the terminal shows {text}"), || {
            self.text().contains(text).then_some(())
        });
    }

    /// The status with which the command ends.
    #[track_caller]
    pub fn end(&mut self, sandbox: &Sandbox) -> Option<i32> {
        let status =
            sandbox.wait_for("the command ends", || self.child.try_wait().expect("our own child"));
        status.code()
    }

    /// Whether it echoes and is in canonical mode, the state before the command ran.
    pub fn is_as_before(&self) -> bool {
        use rustix::termios::{LocalModes, tcgetattr};
        let modes = tcgetattr(&self.slave).expect("a terminal").local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps what is shown; a terminal that nobody reads would stop the command.
fn follow(mut master: File, shown: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        // Ends in EIO when nobody has the other end open any more.
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.extend_from_slice(&buffer[..length]);
        }
    });
}
