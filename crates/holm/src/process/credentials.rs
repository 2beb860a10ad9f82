use holm_sys::process::set_fs_ids;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySets, capabilities, set_capabilities, set_thread_res_gid, set_thread_res_uid,
};

use super::{Error, Result};

/// While this lives, the process has guest root's credentials and keeps its capabilities.
///
/// On mapped mounts only the guest's ids exist: a file made by the host's root could have no owner.
#[derive(Debug)]
pub struct GuestRoot(());

impl GuestRoot {
    /// Assumes the guest's base id as effective uid and gid.
    pub fn assume(base: u32) -> Result<Self> {
        let fail = |errno| Error::step("assume the credentials of", "the guest's root", errno);
        let own = capabilities(None).map_err(fail)?;
        set_thread_res_gid(None, Gid::from_raw(base), None).map_err(fail)?;
        set_thread_res_uid(None, Uid::from_raw(base), None).map_err(fail)?;
        let assumed = Self(());
        // Leaving effective uid 0 has emptied the effective set; the permitted one is still there.
        set_capabilities(None, CapabilitySets { effective: own.permitted, ..own }).map_err(fail)?;
        Ok(assumed)
    }
}

impl Drop for GuestRoot {
    fn drop(&mut self) {
        // Going back to saved ids cannot fail; with effective uid 0 the kernel refills the
        // effective set.
        let _ = set_thread_res_uid(None, Uid::ROOT, None);
        let _ = set_thread_res_gid(None, Gid::ROOT, None);
        set_fs_ids(0, 0);
    }
}
