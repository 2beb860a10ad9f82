//! Sending messages, and receiving replies.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};

use super::read::Messages;
use super::write::Batch;
use crate::net::request::Request;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// A request that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The request.
    pub request: Request,
    /// The kernel's error.
    pub errno: Errno,
}

impl Refused {
    fn io(errno: Errno) -> Self {
        Self { request: Request::Exchange, errno }
    }
}

/// A netlink socket of the calling thread's network namespace.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// A socket that the kernel tells each change of an interface.
#[derive(Debug)]
pub struct LinkChanges(OwnedFd);

impl LinkChanges {
    /// Waits until an interface has changed since the last call; `false` if none had by then.
    pub fn wait_until(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return false };
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        if !matches!(poll(&mut polled, Some(&left)), Ok(1..)) {
            return false;
        }
        // What it says does not matter, nor that there was too much of it.
        while recv(&self.0, &mut [0u8; 8192][..], RecvFlags::DONTWAIT).is_ok() {}
        true
    }
}

impl Socket {
    /// For links, addresses and routes.
    pub fn route() -> Result<Self, Refused> {
        Self::open(None)
    }

    /// For nftables.
    pub fn netfilter() -> Result<Self, Refused> {
        Self::open(Some(netlink::NETFILTER))
    }

    /// For waiting until an interface changes.
    pub fn link_changes() -> Result<LinkChanges, Refused> {
        /// `RTMGRP_LINK`.
        const LINKS: u32 = 1;
        let Self(fd) = Self::route()?;
        bind(&fd, &netlink::SocketAddrNetlink::new(0, LINKS)).map_err(Refused::io)?;
        Ok(LinkChanges(fd))
    }

    /// The socket itself, for who only reads what the kernel sends.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    fn open(protocol: Option<Protocol>) -> Result<Self, Refused> {
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .map(Self)
            .map_err(Refused::io)
    }

    /// Sends a batch whose message `last` (counted from 0) requests an acknowledgement, and waits
    /// for that. Returns the error of the first message that failed.
    fn send_and_wait(&self, batch: &Batch, last: u32) -> Result<(), Refused> {
        send(&self.0, batch.bytes(), SendFlags::empty()).map_err(Refused::io)?;
        let mut refused: Option<(u32, Errno)> = None;
        let mut buffer = [0u8; 8192];
        loop {
            let (length, _) =
                recv(&self.0, &mut buffer[..], RecvFlags::empty()).map_err(Refused::io)?;
            for message in Messages(&buffer[..length]) {
                if message.kind != NLMSG_ERROR {
                    continue;
                }
                if let Some(errno) = message.error()
                    && refused.is_none_or(|(sequence, _)| message.sequence < sequence)
                {
                    refused = Some((message.sequence, errno));
                }
                if message.sequence == last {
                    return refused.map_or(Ok(()), |(sequence, errno)| {
                        Err(Refused { request: batch.request(sequence), errno })
                    });
                }
            }
        }
    }

    /// Sends a batch and waits until the kernel has processed it.
    pub fn execute(&self, batch: &mut Batch) -> Result<(), Refused> {
        let last = batch.acknowledge();
        self.send_and_wait(batch, last)
    }

    /// Sends an nftables transaction: the kernel applies all of the batch or nothing.
    pub fn commit(&self, fill: impl FnOnce(&mut Batch)) -> Result<(), Refused> {
        // nfgenmsg: any family, version 0, the subsystem (nftables, 10) in network order.
        const SUBSYSTEM: [u8; 4] = [0, 0, 0, 10];
        const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
        const NFNL_MSG_BATCH_END: u16 = 0x11;
        let mut batch = Batch::default();
        batch.message(Request::OpenTransaction, NFNL_MSG_BATCH_BEGIN, 0, &SUBSYSTEM);
        fill(&mut batch);
        let last = batch.acknowledge();
        batch.message(Request::CloseTransaction, NFNL_MSG_BATCH_END, 0, &SUBSYSTEM);
        self.send_and_wait(&batch, last)
    }

    /// Sends a batch of one query, and calls `each` with every message of the reply.
    pub fn query(&self, batch: &Batch, mut each: impl FnMut(u16, &[u8])) -> Result<(), Refused> {
        send(&self.0, batch.bytes(), SendFlags::empty()).map_err(Refused::io)?;
        let mut buffer = vec![0u8; 32768];
        loop {
            let (length, _) =
                recv(&self.0, &mut buffer[..], RecvFlags::empty()).map_err(Refused::io)?;
            for message in Messages(&buffer[..length]) {
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        return message.error().map_or(Ok(()), |errno| {
                            Err(Refused { request: batch.request(0), errno })
                        });
                    }
                    kind => each(kind, message.payload),
                }
            }
            if !batch.is_dump() && !batch.is_acknowledged() {
                return Ok(());
            }
        }
    }
}
