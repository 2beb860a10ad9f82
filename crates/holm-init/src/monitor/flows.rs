//! Recording the connections that the guest opens.

use super::log::Log;
use crate::flows::connections;
use holm_proto::Flow;
use holm_proto::flow::{LIMIT, RECORD};
use holm_sys::bare;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Bytes of a datagram, in which the kernel puts several packets: as many as the memory holds that
/// it has for the size that the engine asks for.
const DATAGRAM_MAX: usize = 8192;

/// How many records are written at once.
const BATCH: usize = 32;

/// The socket that tells connections, and where they are recorded.
pub struct Flows {
    pub socket: OwnedFd,
    directory: OwnedFd,
    log: Log,
    /// When records were last lost, in seconds since 1970.
    lost: u64,
}

impl Flows {
    pub fn new(socket: OwnedFd, directory: OwnedFd) -> Flows {
        let log = Log::open(&directory, LIMIT, RECORD as u64);
        Flows { socket, directory, log, lost: 0 }
    }

    /// Takes a datagram and records what it tells; returns whether there was one.
    pub fn receive(&mut self) -> bool {
        let mut datagram = [0; DATAGRAM_MAX];
        let at = bare::seconds();
        match recv(&self.socket, &mut datagram[..], RecvFlags::DONTWAIT) {
            Ok((length, _)) => {
                self.record(&datagram[..length], at);
                true
            }
            // The socket was full. Once in a second is enough to know that.
            Err(Errno::NOBUFS) => {
                if self.lost != at {
                    self.log.append(&self.directory, &Flow::Lost { at }.to_bytes());
                    self.lost = at;
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Takes what is left when the guest has ended. The kernel holds packets back until there are
    /// several, and sends those when nobody listens to the group any more.
    pub fn receive_rest(&mut self, group: Option<i32>) {
        const MOST: u32 = 1024;
        if let Some(group) = group {
            let _ = send(&self.socket, &unbind(group), SendFlags::empty());
        }
        (0..MOST).all(|_| self.receive());
    }

    fn record(&mut self, datagram: &[u8], at: u64) {
        let Flows { directory, log, .. } = self;
        let mut records = [0; BATCH * RECORD];
        let mut used = 0;
        connections(datagram, at, |flow| {
            if let Some(room) = records.get_mut(used..used + RECORD) {
                room.copy_from_slice(&flow.to_bytes());
                used += RECORD;
            }
            if used == BATCH * RECORD {
                log.append(directory, &records);
                used = 0;
            }
        });
        if let Some(records) = records.get(..used).filter(|records| !records.is_empty()) {
            log.append(directory, records);
        }
    }
}

/// The request to tell no more to a group: a `nlmsghdr` for `NFULNL_MSG_CONFIG`, a `nfgenmsg`, and
/// the attribute `NFULA_CFG_CMD` with `NFULNL_CFG_CMD_UNBIND`.
fn unbind(group: i32) -> [u8; 28] {
    const UNBIND: [u32; 7] = [28, 1 << 16 | 0x0401, 0, 0, 0, 1 << 16 | 5, 2];
    let mut message = [0; 28];
    for (room, number) in message.as_chunks_mut::<4>().0.iter_mut().zip(UNBIND) {
        *room = number.to_ne_bytes();
    }
    let [.., high, low] = group.to_be_bytes();
    message[18] = high;
    message[19] = low;
    message
}
