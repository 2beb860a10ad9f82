//! The program at a port of a bridge, as a classifier of the port's `clsact` qdisc (`pkt_cls.h`).
//!
//! The kernel's newer way to attach programs to interfaces (tcx) waits for all CPUs, 17 ms here.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::net::netlink::{Batch, CREATE, DUMP, EXCL, Refused, Socket, find, number};
use crate::net::request::Request;
use crate::net::tc;
use crate::net::uapi::{RTM_GETTFILTER, RTM_NEWQDISC, RTM_NEWTFILTER, TCA_KIND, TCA_OPTIONS};

/// The qdisc, and its classes of what comes in.
const CLSACT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
/// The only filter: priority 1, of all protocols.
const FIRST: u32 = 1 << 16 | (0x0003_u16.to_be() as u32);
/// Where that is in `struct tcmsg`.
const INFO: usize = 16;

const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_ID: u16 = 11;
/// What the program returns is what happens to the packet.
const DIRECT_ACTION: u32 = 1;

/// Has a program decide what comes in by an interface that was just made.
pub fn attach(
    socket: &Socket,
    interface: u32,
    name: &str,
    program: BorrowedFd<'_>,
) -> Result<(), Refused> {
    let mut filter = tc::header(interface, 0, INGRESS);
    filter[INFO..].copy_from_slice(&FIRST.to_ne_bytes());
    let mut batch = Batch::default();
    batch
        .message(
            Request::MakeQdisc,
            RTM_NEWQDISC,
            CREATE | EXCL,
            &tc::header(interface, HANDLE, CLSACT),
        )
        .text(TCA_KIND, "clsact");
    batch
        .message(Request::AttachProgram, RTM_NEWTFILTER, CREATE | EXCL, &filter)
        .text(TCA_KIND, "bpf")
        .nest(TCA_OPTIONS, |batch| {
            batch
                .number(BPF_FD, program.as_raw_fd().cast_unsigned())
                .text(BPF_NAME, name)
                .number(BPF_FLAGS, DIRECT_ACTION);
        });
    socket.execute(&mut batch)
}

/// The number of the program that does; `None` if none was attached this way.
pub fn attached(socket: &Socket, interface: u32) -> Result<Option<u32>, Refused> {
    let mut batch = Batch::default();
    batch.message(Request::AttachProgram, RTM_GETTFILTER, DUMP, &tc::header(interface, 0, INGRESS));
    let mut id = None;
    socket.query(&batch, |_, payload| id = id.or_else(|| program(payload)))?;
    Ok(id)
}

/// The number of the program in a message about the filter; `None` for one of another priority.
fn program(payload: &[u8]) -> Option<u32> {
    let info = number(payload.get(INFO..)?)?;
    let options = find(payload.get(20..)?, TCA_OPTIONS)?;
    number(find(options, BPF_ID)?).filter(|_| info == FIRST)
}
