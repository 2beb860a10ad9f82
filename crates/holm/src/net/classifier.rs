//! A BPF program at an interface, as a classifier of its `clsact` qdisc (`pkt_cls.h`).
//!
//! The kernel's newer way to attach programs to interfaces (tcx) waits for all CPUs, 17 ms here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use holm_bpf::Program;
use holm_sys::bpf::{self, Hook};
use rustix::io::Errno;

use super::error::Error;
use super::netlink::{
    Batch, CREATE, DUMP, ECHO, EXCL, REPLACE, Refused, Socket, find, number, text,
};
use super::request::Request;
use super::tc::{gone, header};
use super::uapi::{
    RTM_DELQDISC, RTM_DELTFILTER, RTM_GETQDISC, RTM_GETTFILTER, RTM_NEWQDISC, RTM_NEWTFILTER,
    TCA_KIND, TCA_OPTIONS,
};

/// The qdisc.
const CLSACT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
/// The only filter: priority 1, of all protocols.
const FIRST: u32 = 1 << 16 | (0x0003_u16.to_be() as u32);
/// Where that is in `struct tcmsg`.
const INFO: usize = 16;
/// The handle of its only program, as the kernel counts, and where that is.
const ONLY: u32 = 1;
const HANDLE_AT: usize = 8;

const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_ID: u16 = 11;
/// What the program returns is what happens to the packet.
const DIRECT_ACTION: u32 = 1;

/// Which packets a program decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Packets {
    /// Those that come in.
    Received = 0xffff_fff2,
    /// Those that go out.
    Sent = 0xffff_fff3,
}

/// Whether an interface has neither this qdisc nor `ingress`.
pub fn is_free(socket: &Socket, interface: u32) -> Result<bool, Refused> {
    let mut batch = Batch::default();
    batch.message(Request::FindQdisc, RTM_GETQDISC, ECHO, &header(interface, 0, CLSACT));
    batch.acknowledge();
    let mut is_free = true;
    match socket.query(&batch, |_, _| is_free = false) {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused),
        _ => Ok(is_free),
    }
}

/// Has a program with a map decide about packets of an interface that is free. Both messages are
/// one, so that whoever is killed leaves both or nothing.
pub fn attach(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    program: &Program,
    map: &bpf::Map,
) -> io::Result<()> {
    let maps: Vec<_> = program.maps.iter().map(|(at, _)| (*at, map)).collect();
    let loaded = bpf::load_with_maps(Hook::Classifier, program.name, program.instructions, &maps)?;
    attach_loaded(socket, interface, packets, program.name, loaded.as_fd())
}

/// The same with a program that is loaded.
fn attach_loaded(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    name: &str,
    program: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut batch = Batch::default();
    let qdisc = header(interface, HANDLE, CLSACT);
    batch.message(Request::MakeQdisc, RTM_NEWQDISC, CREATE | EXCL, &qdisc).text(TCA_KIND, "clsact");
    set(&mut batch, CREATE | EXCL, &filter(interface, packets), name, program);
    Ok(socket.execute(&mut batch).map_err(|refused| refused.errno)?)
}

/// A message that makes a filter of a program.
fn set(batch: &mut Batch, flags: u16, filter: &[u8], name: &str, program: BorrowedFd<'_>) {
    batch
        .message(Request::AttachProgram, RTM_NEWTFILTER, flags, filter)
        .text(TCA_KIND, "bpf")
        .nest(TCA_OPTIONS, |batch| {
            batch
                .number(BPF_FD, program.as_raw_fd().cast_unsigned())
                .text(BPF_NAME, name)
                .number(BPF_FLAGS, DIRECT_ACTION);
        });
}

/// Has a loaded program decide, in place of an older one of that name if there is one. Does nothing
/// where another has a classifier.
pub fn replace(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    name: &str,
    program: BorrowedFd<'_>,
) -> io::Result<()> {
    let errno = |refused: Refused| refused.errno;
    if id(socket, interface, packets, name).map_err(errno)?.is_some() {
        let mut filter = filter(interface, packets);
        filter[HANDLE_AT..][..4].copy_from_slice(&ONLY.to_ne_bytes());
        let mut batch = Batch::default();
        set(&mut batch, CREATE | REPLACE, &filter, name, program);
        return Ok(socket.execute(&mut batch).map_err(errno)?);
    }
    if !is_free(socket, interface).map_err(errno)? {
        return Ok(());
    }
    attach_loaded(socket, interface, packets, name, program)
}

/// The map of such a program; `None` if it is not attached this way.
pub fn map(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    program: &Program,
) -> io::Result<Option<bpf::Map>> {
    let id = id(socket, interface, packets, program.name).map_err(|refused| refused.errno)?;
    id.map_or(Ok(None), bpf::map_of)
}

/// The id of a program of that name; `None` if it is not attached this way.
pub fn id(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    wanted: &str,
) -> Result<Option<u32>, Refused> {
    let mut id = None;
    filters(socket, interface, packets, |info, options| {
        let name = find(options, BPF_NAME).and_then(text);
        if info == FIRST && name == Some(wanted) {
            id = find(options, BPF_ID).and_then(number);
        }
    })?;
    Ok(id)
}

/// Removes a program that is attached this way, and the qdisc unless it has filters of others by
/// now.
pub fn detach(socket: &Socket, interface: u32, packets: Packets) -> Result<(), Error> {
    let mut others = false;
    for looked_at in [Packets::Received, Packets::Sent] {
        let is_other = |info| info != FIRST || looked_at != packets;
        filters(socket, interface, looked_at, |info, _| others |= is_other(info))?;
    }
    let mut batch = Batch::default();
    if others {
        batch.message(Request::DetachProgram, RTM_DELTFILTER, 0, &filter(interface, packets));
    } else {
        let qdisc = header(interface, HANDLE, CLSACT);
        batch.message(Request::RemoveQdisc, RTM_DELQDISC, 0, &qdisc);
    }
    gone(socket.execute(&mut batch))
}

/// `struct tcmsg` of the filter.
fn filter(interface: u32, packets: Packets) -> [u8; 20] {
    let mut filter = header(interface, 0, packets as u32);
    filter[INFO..].copy_from_slice(&FIRST.to_ne_bytes());
    filter
}

/// Reports priority and protocol of all filters of an interface, with their options.
fn filters(
    socket: &Socket,
    interface: u32,
    packets: Packets,
    mut report: impl FnMut(u32, &[u8]),
) -> Result<(), Refused> {
    let mut batch = Batch::default();
    let all = header(interface, 0, packets as u32);
    batch.message(Request::FindProgram, RTM_GETTFILTER, DUMP, &all);
    socket.query(&batch, |_, payload| {
        let info = payload.get(INFO..).and_then(number);
        let options = payload.get(20..).and_then(|attributes| find(attributes, TCA_OPTIONS));
        if let Some(info) = info {
            report(info, options.unwrap_or_default());
        }
    })
}
