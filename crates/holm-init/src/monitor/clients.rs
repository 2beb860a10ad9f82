//! Those who look at the console.

use super::console::Console;
use super::ended::Ended;
use super::watch::{Token, Watch};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};

/// As many as may look at once.
const CLIENTS: usize = 16;

/// The longest message a client sends: its kind and 1024 bytes of input.
pub const INPUT_MAX: usize = 1 + 1024;

/// What one client may lag behind, in bytes.
const LAG: usize = 1 << 20;

#[derive(Default)]
pub struct Clients([Option<OwnedFd>; CLIENTS]);

impl Clients {
    /// Lets one more look; one too many is turned away.
    pub fn accept(&mut self, listener: &OwnedFd, watch: &Watch, console: bool) {
        let Ok(client) = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) else {
            return;
        };
        let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) else { return };
        let _ = sockopt::set_socket_send_buffer_size_force(&client, LAG);
        if send(&client, &[b'h', u8::from(console)], SendFlags::NOSIGNAL).is_ok() {
            watch.edge(&client, Token::Client);
            *slot = Some(client);
        }
    }

    /// Sends `message` to all; who cannot take it is dropped.
    pub fn send(&mut self, message: &[u8]) {
        for slot in &mut self.0 {
            let sent = slot.as_ref().map(|client| send(client, message, SendFlags::NOSIGNAL));
            if matches!(sent, Some(Err(_))) {
                *slot = None;
            }
        }
    }

    /// Takes what clients sent, as long as the console has room for it.
    pub fn receive(&mut self, console: &mut Option<Console>) {
        let mut message = [0; INPUT_MAX];
        for slot in &mut self.0 {
            while let Some(client) = slot
                && !console.as_ref().is_some_and(Console::is_full)
            {
                match recv(client, &mut message[..], RecvFlags::DONTWAIT) {
                    Ok((len @ 1.., _)) => act(&message[..len], console.as_mut()),
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                    _ => *slot = None,
                }
            }
        }
    }

    /// Tells all that the guest's init has ended.
    pub fn end(&mut self, ended: Ended) {
        let mut message = [0; 64];
        message[0] = b'x';
        let len = 1 + ended.write(&mut message[1..]);
        self.send(&message[..len]);
    }
}

fn act(message: &[u8], console: Option<&mut Console>) {
    let Some(console) = console else { return };
    match *message {
        [b'i', ref bytes @ ..] => console.input(bytes),
        [b'w', r0, r1, c0, c1] => {
            console.resize(u16::from_le_bytes([r0, r1]), u16::from_le_bytes([c0, c1]));
        }
        _ => {}
    }
}
