//! Recording the connections that the guest opens.

use super::log::Log;
use crate::flows::connections;
use holm_proto::Flow;
use holm_proto::flow::{LIMIT, RECORD};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of a datagram, in which the kernel puts several packets: more than the engine asks for.
const DATAGRAM_MAX: usize = 8192;

/// How many records are written at once.
const BATCH: usize = 32;

/// The socket that tells connections, and where they are recorded.
pub struct Flows {
    pub socket: OwnedFd,
    group: u16,
    directory: OwnedFd,
    log: Log,
    /// When records were last lost, in seconds since 1970.
    lost: u64,
}

impl Flows {
    pub fn new(socket: OwnedFd, group: u16, directory: OwnedFd) -> Flows {
        let log = Log::open(&directory, LIMIT, RECORD as u64);
        Flows { socket, group, directory, log, lost: 0 }
    }

    /// Takes a datagram and records what it tells; returns whether there was one.
    pub fn receive(&mut self) -> bool {
        let mut datagram = [0; DATAGRAM_MAX];
        let at = u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0);
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
    /// several, and sends those when nobody listens any more.
    pub fn receive_rest(&mut self) {
        const MOST: u32 = 1024;
        let _ = send(&self.socket, &unbind(self.group), SendFlags::empty());
        (0..MOST).all(|_| self.receive());
    }

    fn record(&mut self, datagram: &[u8], at: u64) {
        let Flows { directory, log, .. } = self;
        let mut records = [[0; RECORD]; BATCH];
        let mut used = 0;
        connections(datagram, at, |flow| {
            records[used] = flow.to_bytes();
            used += 1;
            if used == BATCH {
                log.append(directory, records.as_flattened());
                used = 0;
            }
        });
        if used > 0 {
            log.append(directory, records[..used].as_flattened());
        }
    }
}

/// The request to tell no more to a group (`NFULNL_MSG_CONFIG` with `NFULNL_CFG_CMD_UNBIND`), in
/// the host's order but for the group.
fn unbind(group: u16) -> [u8; 28] {
    const LENGTH: [u8; 4] = 28u32.to_ne_bytes();
    const CONFIG: [u8; 2] = 0x0401u16.to_ne_bytes();
    const REQUEST: [u8; 2] = 1u16.to_ne_bytes();
    const ATTRIBUTE: [u8; 2] = 5u16.to_ne_bytes();
    const COMMAND: [u8; 2] = 1u16.to_ne_bytes();
    const UNBIND: u8 = 2;
    let mut message = [0; 28];
    message[..4].copy_from_slice(&LENGTH);
    message[4..6].copy_from_slice(&CONFIG);
    message[6..8].copy_from_slice(&REQUEST);
    message[18..20].copy_from_slice(&group.to_be_bytes());
    message[20..22].copy_from_slice(&ATTRIBUTE);
    message[22..24].copy_from_slice(&COMMAND);
    message[24] = UNBIND;
    message
}
