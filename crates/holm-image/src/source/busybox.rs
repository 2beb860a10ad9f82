//! A small system around the host's static busybox.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use composefs::fsverity::Sha256HashValue;
use composefs::tree::{LeafContent, RegularFile, Stat};

use crate::elf;
use crate::error::{Error, Result};
use crate::objects::{Body, Objects};
use crate::parallel::Buffers;
use crate::tree::Tree;

const PLACES: [&str; 4] =
    ["/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox", "/sbin/busybox"];

const DIRECTORIES: [(&str, u32); 17] = [
    ("bin", 0o755),
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("mnt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("sbin", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr/bin", 0o755),
    ("usr/sbin", 0o755),
    ("var/log", 0o755),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
    ("var/www", 0o755),
];

const FILES: [(&str, u32, &str); 9] = [
    (
        "etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/sh\n\
         daemon:x:1:1:daemon:/usr/sbin:/bin/false\n\
         nobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/group", 0o644, "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n"),
    (
        "etc/shadow",
        0o600,
        "root:*:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n",
    ),
    ("etc/shells", 0o644, "/bin/sh\n"),
    ("etc/hosts", 0o644, "127.0.0.1 localhost\n::1 localhost\n"),
    (
        "etc/profile",
        0o644,
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
    ),
    ("etc/inittab", 0o644, "::respawn:-/bin/sh\n::ctrlaltdel:/sbin/reboot\n"),
    ("etc/os-release", 0o644, "ID=busybox\nNAME=BusyBox\nPRETTY_NAME=\"BusyBox\"\n"),
    ("var/www/index.html", 0o644, "It works.\n"),
];

/// Makes a system of the host's busybox and a few files.
pub fn read(tree: &mut Tree, objects: &Objects) -> Result<()> {
    let path = find()?;
    let mut file = File::open(&path).map_err(Error::io("open", &path))?;
    let time = file.metadata().map_err(Error::io("stat", &path))?.mtime();
    // The files get busybox's time, so that importing it again makes the same image.
    let stat = |mode| Stat {
        st_mode: mode,
        st_uid: 0,
        st_gid: 0,
        st_mtim_sec: time,
        st_mtim_nsec: 0,
        xattrs: BTreeMap::new(),
    };
    for (path, mode) in [("", 0o755), ("usr", 0o755), ("var", 0o755)].into_iter().chain(DIRECTORIES)
    {
        tree.directory(path.as_bytes(), stat(mode))?;
    }
    let mut buffers = Buffers::new();
    for (name, mode, text) in FILES {
        let content = store(&mut text.as_bytes(), &path, objects, &mut buffers)?;
        tree.file(name.as_bytes(), stat(mode), LeafContent::Regular(content))?;
    }
    let content = store(&mut file, &path, objects, &mut buffers)?;
    tree.file(b"bin/busybox", stat(0o755), LeafContent::Regular(content))?;
    for applet in applets(&path)? {
        if applet != "bin/busybox" && tree.find(applet.as_bytes()).is_none() {
            let link = LeafContent::Symlink(OsStr::new("/bin/busybox").into());
            tree.file(applet.as_bytes(), stat(0o777), link)?;
        }
    }
    Ok(())
}

fn store(
    data: &mut dyn Read,
    path: &Path,
    objects: &Objects,
    buffers: &mut Buffers,
) -> Result<RegularFile<Sha256HashValue>> {
    let Buffers { read, write } = buffers;
    let mut body = Body::new(objects, write);
    loop {
        match data.read(read).map_err(Error::io("read", path))? {
            0 => return body.end(read),
            n => body.data(&read[..n])?,
        }
    }
}

/// The host's busybox, if it is statically linked.
fn find() -> Result<PathBuf> {
    let is_static = |path: &PathBuf| fs::read(path).is_ok_and(|data| elf::is_static(&data));
    PLACES.iter().map(PathBuf::from).find(is_static).ok_or_else(|| {
        Error::source("busybox", "the host has no static busybox: `apt install busybox-static`")
    })
}

/// Its applets, as the paths of links to it.
fn applets(path: &Path) -> Result<Vec<String>> {
    let output =
        Command::new(path).arg("--list-full").output().map_err(Error::io("start", path))?;
    listed(&output).map_err(|message| Error::Tool {
        program: "busybox --list-full",
        message: format!("{}: {message}; `apt install --reinstall busybox-static`", path.display()),
    })
}

/// The applets that `--list-full` has printed, if it came to its end.
fn listed(output: &Output) -> std::result::Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let applets: Vec<String> = text.lines().map(str::to_owned).collect();
    match (output.status.success(), applets.len()) {
        (true, 0) => Err("it lists no applets".to_owned()),
        (true, _) => Ok(applets),
        // A part of the list would make a base without some of its commands.
        (false, count) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next_back().map(|line| format!(", {line}"));
            Err(format!("{} after {count} applets{}", output.status, said.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn output(status: i32, stdout: &str) -> Output {
        let (stdout, stderr) = (stdout.as_bytes().to_vec(), b"warning\nno memory\n".to_vec());
        Output { status: ExitStatus::from_raw(status), stdout, stderr }
    }

    #[test]
    fn a_list_of_applets_counts_only_if_it_is_complete() {
        let (exited_1, killed) = (1 << 8, 9);
        assert_eq!(
            listed(&output(0, "bin/ls\nbin/sh\n")),
            Ok(vec!["bin/ls".into(), "bin/sh".into()])
        );
        assert!(listed(&output(0, "")).is_err());
        let message = listed(&output(exited_1, "bin/ls\nbin/s")).expect_err("it failed");
        assert_eq!(message, "exit status: 1 after 2 applets, no memory");
        let message = listed(&output(killed, "bin/ls\n")).expect_err("it was killed");
        assert_eq!(message, "signal: 9 (SIGKILL) after 1 applets, no memory");
    }
}
