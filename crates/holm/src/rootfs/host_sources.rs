use std::path::PathBuf;

use super::{Result, binds, dev};
use crate::config::BindMount;

/// Looks whether the host has these devices and the sources of these bind mounts.
pub fn check_host_sources(devices: &[PathBuf], binds: &[BindMount]) -> Result<()> {
    devices.iter().try_for_each(|device| dev::check_device(device))?;
    binds.iter().try_for_each(|bind| binds::find(bind).map(drop))
}
