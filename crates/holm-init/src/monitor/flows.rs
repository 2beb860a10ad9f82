//! Recording the connections that the guest opens.

use super::log::Log;
use crate::flows::connections;
use holm_proto::Flow;
use holm_proto::flow::{LIMIT, RECORD};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of a datagram, in which the kernel puts several packets: more than the engine asks for.
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

    /// Takes what is there when the guest has ended.
    pub fn receive_rest(&mut self) {
        const MOST: u32 = 1024;
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
