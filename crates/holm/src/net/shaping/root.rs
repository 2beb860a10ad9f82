//! The root qdisc of an interface: whose it is.

use rustix::io::Errno;

use super::class::{DEPARTURES, HTB};
use crate::net::error::Error;
use crate::net::netlink::{Batch, DUMP, ECHO, Refused, Socket, find, text};
use crate::net::request::Request;
use crate::net::tc::{gone, header, names};
use crate::net::uapi::{RTM_DELQDISC, RTM_GETQDISC, TC_H_ROOT, TCA_KIND};

/// The root qdisc of an interface.
#[derive(Debug, PartialEq, Eq)]
pub enum Root {
    /// What the kernel gives each interface.
    Default,
    /// Holm's HTB.
    Htb,
    /// Holm's mq, see `departures`.
    Departures,
    /// Somebody else's, of this kind.
    Other(String),
}

impl Root {
    /// Reads a message about a qdisc. The handle alone does not tell: those of other interfaces may
    /// be the same, as that of `receive` is.
    fn parse(payload: &[u8]) -> Self {
        let kind = payload.get(20..).and_then(|attributes| find(attributes, TCA_KIND));
        match (names(payload), kind.and_then(text)) {
            (Some((_, HTB)), Some("htb")) => Self::Htb,
            (Some((_, DEPARTURES)), Some("mq")) => Self::Departures,
            (Some((_, 0)), _) => Self::Default,
            (_, kind) => Self::Other(kind.unwrap_or_default().to_owned()),
        }
    }
}

/// The root qdisc of an interface.
pub fn root(socket: &Socket, interface: u32) -> Result<Root, Error> {
    let mut batch = Batch::default();
    // The kernel tells of one qdisc only who asks for an echo, and of those that interfaces have by
    // themselves nothing.
    batch.message(Request::FindQdisc, RTM_GETQDISC, ECHO, &header(interface, 0, TC_H_ROOT));
    batch.acknowledge();
    let mut root = Root::Default;
    let asked = socket.query(&batch, |_, payload| root = Root::parse(payload));
    match asked {
        // An interface without any, and one that is gone.
        Err(Refused { errno: Errno::NOENT | Errno::NODEV, .. }) => Ok(Root::Default),
        asked => Ok(asked.map(|()| root)?),
    }
}

/// The interfaces that have a qdisc of Holm's, and which.
pub fn uplinks(socket: &Socket) -> Result<Vec<(u32, Root)>, Error> {
    let mut batch = Batch::default();
    batch.message(Request::FindQdisc, RTM_GETQDISC, DUMP, &header(0, 0, 0));
    let mut all = Vec::new();
    socket.query(&batch, |_, payload| {
        let root = Root::parse(payload);
        if matches!(root, Root::Htb | Root::Departures) {
            all.extend(names(payload).map(|(interface, _)| (interface, root)));
        }
    })?;
    Ok(all)
}

/// Removes the root qdisc of this handle, if it is there; the kernel gives the interface its
/// default one.
pub fn remove(socket: &Socket, interface: u32, handle: u32) -> Result<(), Error> {
    let mut batch = Batch::default();
    let header = header(interface, handle, TC_H_ROOT);
    batch.message(Request::RemoveQdisc, RTM_DELQDISC, 0, &header);
    gone(socket.execute(&mut batch))
}
