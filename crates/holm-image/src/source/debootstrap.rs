//! Installing Debian with mmdebstrap.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Progress, apt};
use crate::error::{Error, Result};

/// Directories whose contents are left out: mmdebstrap leaves device nodes in /dev, and the
/// contents of the others are temporary.
pub const EMPTY: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// The packages of every base, beyond those that Debian calls required, and apt: what a system
/// needs to boot, to have sessions (logind), and to inspect its network.
const PACKAGES: [&str; 6] =
    ["dbus", "iproute2", "iputils-ping", "libpam-systemd", "netbase", "procps"];
/// The init of a base unless another is requested.
const INIT: &str = "systemd-sysv";
/// The packages of other inits, with which systemd's sessions do not work.
const OTHER_INITS: [&str; 3] = ["sysvinit-core", "runit-init", "openrc"];

/// The exit status of unshare(1) and setpriv(1) if there is no such program.
const NOT_FOUND: i32 = 127;

/// Installs `suite` into a new directory below `staging`, which it returns.
pub fn install(
    staging: &Path,
    suite: &str,
    packages: &[String],
    mirror: Option<&str>,
    progress: &mut Progress<'_>,
) -> Result<PathBuf> {
    let root = staging.join("root");
    let sources = match mirror {
        Some(mirror) => vec![format!("deb {mirror} {suite} main")],
        None => apt::sources(suite)?,
    };
    mmdebstrap(&root, suite, &include(packages), &sources, progress)?;
    remove_identity(&root)?;
    Ok(root)
}

/// All packages to install, for `--include`.
fn include(packages: &[String]) -> String {
    let mut all: Vec<&str> = PACKAGES.to_vec();
    let asked = |name: &str| packages.iter().any(|p| p == name);
    if OTHER_INITS.iter().any(|name| asked(name)) {
        all.retain(|p| *p != "libpam-systemd");
        // Debian's openrc runs services, but has no process 1.
        if !asked("sysvinit-core") && !asked("runit-init") {
            all.push("sysvinit-core");
        }
    } else {
        all.push(INIT);
    }
    all.extend(packages.iter().map(String::as_str));
    all.join(",")
}

/// Runs mmdebstrap in its own mount and pid namespaces: its mounts are not visible on the host, and
/// all its processes end with this one, however that ends.
fn mmdebstrap(
    root: &Path,
    suite: &str,
    include: &str,
    sources: &[String],
    progress: &mut Progress<'_>,
) -> Result<()> {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .args(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"])
        .arg(format!("--include={include}"))
        .arg(suite)
        .arg(root)
        .args(sources)
        .env("LC_ALL", "C.UTF-8")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Error::io("start", Path::new("setpriv")))?;
    let mut output = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut steps = 0;
        // Not `lines`, which requires UTF-8: a package's script may print anything.
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(Error::io("read the output of", Path::new("mmdebstrap")))?;
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if let Some(step) = line.strip_prefix("I: ") {
                steps += 1;
                progress(steps, None, step);
            } else if !line.is_empty() {
                output.push(line);
            }
        }
    }
    let status = child.wait().map_err(Error::io("wait for", Path::new("mmdebstrap")))?;
    if status.success() {
        return Ok(());
    }
    let message = match status.code() {
        Some(NOT_FOUND) => "it is not installed (`apt install mmdebstrap`)".to_owned(),
        _ => reason(&output),
    };
    Err(Error::Tool { program: "mmdebstrap", message })
}

/// The lines with the reason of a failure, from the output of mmdebstrap and apt.
fn reason(output: &[String]) -> String {
    let is_error = |line: &&String| line.starts_with("E: ");
    let mut errors: Vec<&str> = output.iter().filter(is_error).map(String::as_str).collect();
    if errors.is_empty() {
        errors = output.iter().rev().take(3).rev().map(String::as_str).collect();
    }
    errors.truncate(6);
    errors.join("; ")
}

/// Removes what must be different in each guest, and what was copied from the host.
fn remove_identity(root: &Path) -> Result<()> {
    let etc = root.join("etc");
    for name in ["hostname", "resolv.conf"] {
        remove(&etc.join(name))?;
    }
    let id = etc.join("machine-id");
    fs::write(&id, "").map_err(Error::io("write", &id))?;
    remove(&root.join("var/lib/dbus/machine-id"))?;
    let ssh = etc.join("ssh");
    let keys = match fs::read_dir(&ssh) {
        Ok(keys) => keys,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("read", &ssh)(e)),
    };
    for key in keys {
        let key = key.map_err(Error::io("read", &ssh))?;
        if key.file_name().to_string_lossy().starts_with("ssh_host_") {
            remove(&key.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_init_only() {
        assert!(include(&[]).ends_with(",systemd-sysv"));
        assert!(include(&["nginx".into()]).contains("systemd-sysv,nginx"));
        let other = include(&["sysvinit-core".into()]);
        assert!(!other.contains("systemd"), "{other}");
        assert!(include(&["openrc".into()]).contains(",sysvinit-core,openrc"));
        assert!(!include(&["runit-init".into()]).contains("sysvinit"));
    }

    #[test]
    fn reason_of_a_failed_installation() {
        let output = ["W: slow", "E: Unable to locate package nginxx", "E: setup failed: exit 100"];
        let said = reason(&output.map(String::from));
        assert_eq!(said, "E: Unable to locate package nginxx; E: setup failed: exit 100");
    }
}
