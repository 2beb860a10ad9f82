//! How a launcher becomes the monitor of the guest that it has started.

use super::error::Error;
use super::handoff::Handoff;
use super::image;
use holm_proto::handoff::TITLE;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Turns this process into the guest's monitor; returns only an error.
///
/// The process is init's parent, single-threaded and in the host's namespaces and the monitors'
/// cgroup. It becomes the leader of a session of its own, with / as its working directory and
/// /dev/null as its standard streams: a command that reads the output of `holm start` until its end
/// must not wait for the guest.
pub fn become_monitor(handoff: &Handoff<'_>) -> Result<Infallible, Error> {
    let guest = handoff.name;
    detach().map_err(Error::system(guest, "cannot detach from the caller's terminal"))?;
    let image = image::seal(handoff.cgroup.as_fd()).map_err(Error::system(
        guest,
        "cannot put the monitor's program into a sealed memory file",
    ))?;
    let run = || -> io::Result<Infallible> {
        let title = CString::new(format!("{TITLE}{guest}"))?;
        let env = handoff.environment()?;
        let keep: Vec<_> = handoff.descriptors().into_iter().map(|(_, fd)| fd).collect();
        Err(holm_sys::exec::exec_image(image.as_fd(), &[title], &env, &keep))
    };
    run().map_err(Error::system(guest, "cannot execute the monitor"))
}

fn detach() -> io::Result<()> {
    // Fails for the leader of a process group, which is then a session's leader already or has no
    // terminal to lose.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
