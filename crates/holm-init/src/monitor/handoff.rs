//! What the launcher left for the monitor, read from the environment (encoder: `holm::monitor::handoff`).

use core::ffi::CStr;
use holm_sys::bare::{Args, inherited};
use rustix::fd::OwnedFd;

/// Everything a monitor holds of its guest.
pub struct Handoff {
    /// The guest's name.
    pub name: &'static CStr,
    /// The Holm root it lives under.
    pub root: &'static CStr,
    /// The `holm` program that takes over when init has ended.
    pub holm: &'static CStr,
    /// Init's pidfd.
    pub init: OwnedFd,
    /// The guest's cgroup.
    pub cgroup: OwnedFd,
    /// The guest's folder on the host.
    pub folder: OwnedFd,
    /// Where clients connect.
    pub listener: OwnedFd,
    /// Where init says that it is ready.
    pub notify: Option<OwnedFd>,
    /// The master of the guest's console.
    pub console: Option<OwnedFd>,
    /// The packet socket on the guest's network.
    pub responder: Option<OwnedFd>,
}

impl Handoff {
    /// `None` when something that a monitor cannot do without is missing.
    pub fn take(title: &'static CStr) -> Option<Handoff> {
        let numbers = Args::env(c"MONITOR_FDS")?.to_str().ok()?;
        let fd = |key: &str| inherited(number(numbers, key)?);
        Some(Handoff {
            name: CStr::from_bytes_with_nul(title.to_bytes_with_nul().strip_prefix(b"[holm] ")?)
                .ok()?,
            root: Args::env(c"MONITOR_ROOT")?,
            holm: Args::env(c"MONITOR_HOLM")?,
            init: fd("init")?,
            cgroup: fd("cgroup")?,
            folder: fd("folder")?,
            listener: fd("listener")?,
            notify: fd("notify"),
            console: fd("console"),
            responder: fd("responder"),
        })
    }
}

/// The value of `key` in `key=number key=number`.
fn number(text: &str, key: &str) -> Option<i32> {
    let mut pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key)?.1.parse().ok()
}
