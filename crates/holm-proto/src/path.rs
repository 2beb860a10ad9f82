//! Names that both sides use.

use core::ffi::CStr;

/// Minimal init's program, as its guest sees it.
pub const INIT: &str = "/dev/.holm/init";

/// The socket at which init says that the guest is ready, as the guest sees it.
pub const NOTIFY: &str = "/run/host/notify";

/// The monitor's socket, in the guest's directory below the run directory.
pub const MONITOR_SOCKET: &str = "monitor.sock";

/// The guest's log, in its directory.
pub const LOG: &CStr = c"log";

/// The log before it: what [`LOG`] becomes when it is full.
pub const OLD_LOG: &CStr = c"log.1";

/// How the run ended (see [`crate::ended::Note`]), in the guest's directory.
pub const ENDED: &CStr = c"ended";

/// The attribute of the guest's cgroup that says that init is ready.
pub const READY: &CStr = c"trusted.holm.ready";

/// The attribute of the guest's cgroup with what init last reported of itself: `STATUS=` of
/// `sd_notify(3)`.
pub const STATUS: &CStr = c"trusted.holm.status";

/// The longest text of [`STATUS`] in bytes; the rest is cut off.
pub const STATUS_MAX: usize = 600;
