use rustix::io::Errno;

use super::super::error::{Error, Result};
use super::super::handle::LockedGuest;
use super::super::monitor_process::{MonitorFiles, MonitorSockets, spawn_monitor};
use super::super::running::{RunningGuest, write_record};
use crate::process::{self, own_pid};
use crate::record::now;
use crate::rootfs::SharedImage;
use crate::{launch, monitor, net};

/// Gives a running guest whose monitor has died a new one.
///
/// The new monitor is not init's parent. It learns init's exit status only from kernels that tell
/// it to other processes (6.15), and it cannot tell a reboot from a poweroff.
pub fn adopt(guest: &LockedGuest<'_>, running: &mut RunningGuest) -> Result<()> {
    let RunningGuest { cgroup, record } = running;
    let init = record.init()?.ok_or_else(|| Error::Ended(guest.name().clone()))?;
    record.adopted = Some(now());
    let sockets = match MonitorSockets::open(guest, &record.network) {
        // The guest is about to end and has lost its interface already.
        Err(Error::Net(net::Error::Responder { source: Errno::NODEV | Errno::NXIO, .. })) => {
            MonitorSockets::default()
        }
        other => other?,
    };
    let pool = guest.pool();
    let what = format_args!("the image of base {}", record.base);
    let image = record.image.as_deref();
    let image = image
        .map(|key| SharedImage::hold(&pool.images_dir(), key, pool.waiting(&what)))
        .transpose()
        .map_err(launch::Error::from)?;
    let adopt = |ready: &dyn Fn()| {
        let console = monitor::orphan_console(record.init_pid, &init, record.ids.base)?;
        let init = launch::Running { pidfd: init, console };
        let handoff =
            MonitorFiles::open(guest, cgroup, image.as_ref(), sockets)?.handoff(guest, init, None);
        record.monitor_pid = own_pid();
        record.monitor_inode = process::inode(record.monitor_pid)?;
        write_record(cgroup, guest.name(), record)?;
        ready();
        Ok(monitor::become_monitor(&handoff)?)
    };
    let monitor = spawn_monitor(guest, adopt, || ())?;
    record.monitor_pid = monitor;
    record.monitor_inode = process::inode(monitor)?;
    Ok(())
}
