//! Clients: commands that show the console.

use super::console::Console;
use super::watch::{Token, Watch};
use holm_proto::Ended;
use holm_proto::client::{self, CLIENTS_MAX, REQUEST_MAX, Request};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};

/// How far one client may lag behind, in bytes.
const LAG: usize = 1 << 20;

#[derive(Default)]
pub struct Clients([Option<OwnedFd>; CLIENTS_MAX]);

impl Clients {
    /// Accepts a client; one too many, or one that cannot be watched, is turned away.
    pub fn accept(&mut self, listener: &OwnedFd, watch: &Watch, console: bool) {
        let Ok(socket) = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) else {
            return;
        };
        let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) else { return };
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, LAG);
        if watch.add_edge_triggered(&socket, Token::Client).is_ok()
            && send(&socket, &client::hello(console), SendFlags::NOSIGNAL).is_ok()
        {
            *slot = Some(socket);
        }
    }

    /// Sends `message` to all; a client that cannot take it is dropped.
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
        let mut message = [0; REQUEST_MAX];
        for slot in &mut self.0 {
            while let Some(client) = slot
                && !console.as_ref().is_some_and(Console::has_pending_input)
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
        let mut message = [0; client::END_MAX];
        self.send(client::end(ended, &mut message));
    }
}

fn act(message: &[u8], console: Option<&mut Console>) {
    let Some(console) = console else { return };
    match Request::parse(message) {
        Some(Request::Input(bytes)) => console.input(bytes),
        Some(Request::Size { rows, columns }) => console.resize(rows, columns),
        None => {}
    }
}
