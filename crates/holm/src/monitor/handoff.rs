//! What a launcher passes to the monitor that it becomes.

use holm_proto::Lease;
use holm_proto::handoff::{self, Descriptors, key};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Everything a monitor needs. No descriptor in it may lead into the guest's disk: that would keep
/// it mounted.
#[derive(Debug)]
pub struct Handoff<'a> {
    /// The guest's name.
    pub name: &'a str,
    /// The Holm root.
    pub root: &'a Path,
    /// The `holm` program to execute when init has ended.
    pub holm: PathBuf,
    /// Init's pidfd.
    pub init: OwnedFd,
    /// The guest's cgroup, opened for reading: `trusted.holm.ready` is set on it.
    pub cgroup: OwnedFd,
    /// `guests/NAME`, opened for reading: `log`, `log.1` and `ended` are written there.
    pub directory: OwnedFd,
    /// The bound and listening socket of clients ([`super::listen`]).
    pub listener: OwnedFd,
    /// The lock that keeps the base's image mounted.
    pub image: Option<OwnedFd>,
    /// The datagram socket that init's `NOTIFY_SOCKET` leads to.
    pub notify: Option<OwnedFd>,
    /// The master of the pty that is the guest's console. Anything but a pty's master is not used.
    pub console: Option<OwnedFd>,
    /// By what the guest is answered that asks for its network.
    pub responder: Option<Responder>,
    /// Where the guest's connections are told and recorded.
    pub flows: Option<Flows>,
}

/// What a monitor needs to answer requests for the guest's network.
#[derive(Debug)]
pub struct Responder {
    /// The packet socket by which it replies.
    pub replies: OwnedFd,
    /// The netlink socket that tells requests; without it the packet socket receives them.
    pub requests: Option<OwnedFd>,
    /// What it offers.
    pub lease: Lease,
}

/// What a monitor needs to record connections.
#[derive(Debug)]
pub struct Flows {
    /// The netlink socket that tells them.
    pub socket: OwnedFd,
    /// The number of its group.
    pub group: u16,
    /// The directory for them.
    pub directory: OwnedFd,
}

impl Handoff<'_> {
    /// The descriptors, which stay open across exec, by their keys.
    pub(super) fn descriptors(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        let mut fds = vec![
            (key::INIT, self.init.as_fd()),
            (key::CGROUP, self.cgroup.as_fd()),
            (key::DIRECTORY, self.directory.as_fd()),
            (key::LISTENER, self.listener.as_fd()),
        ];
        let responder = self.responder.as_ref();
        let optional = [
            (key::IMAGE, self.image.as_ref()),
            (key::NOTIFY, self.notify.as_ref()),
            (key::CONSOLE, self.console.as_ref()),
            (key::RESPONDER, responder.map(|it| &it.replies)),
            (key::REQUESTS, responder.and_then(|it| it.requests.as_ref())),
            (key::FLOWS, self.flows.as_ref().map(|flows| &flows.socket)),
            (key::FLOW_DIRECTORY, self.flows.as_ref().map(|flows| &flows.directory)),
        ];
        fds.extend(optional.into_iter().filter_map(|(key, fd)| Some((key, fd?.as_fd()))));
        fds
    }

    /// The monitor's environment: the handoff, then what `holm monitor-ended` needs of the caller's
    /// environment.
    pub(super) fn environment(&self) -> io::Result<Vec<CString>> {
        let mut numbers: Vec<_> =
            self.descriptors().into_iter().map(|(key, fd)| (key, fd.as_raw_fd())).collect();
        numbers.extend(self.flows.as_ref().map(|flows| (key::FLOW_GROUP, flows.group.into())));
        let variable = |name: &CStr, value: &[u8]| {
            CString::new([name.to_bytes(), b"=", value].concat()).map_err(io::Error::from)
        };
        let mut env = vec![
            variable(handoff::DESCRIPTORS, Descriptors(&numbers).to_string().as_bytes())?,
            variable(handoff::ROOT, self.root.as_os_str().as_bytes())?,
            variable(handoff::HOLM, self.holm.as_os_str().as_bytes())?,
        ];
        if let Some(Responder { lease, .. }) = &self.responder {
            env.push(variable(handoff::LEASE, &lease.to_text())?);
        }
        for (name, value) in std::env::vars_os() {
            let name = name.into_vec();
            if name == b"PATH" || name.starts_with(b"HOLM_") {
                env.push(CString::new([&name, &b"="[..], value.as_bytes()].concat())?);
            }
        }
        Ok(env)
    }
}
