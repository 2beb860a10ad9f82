//! What overlayfs does when the first write to a file copies it into the private layer: who keeps
//! the old file, and who follows.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use holm_sys::file::{SharedMap, handle, lease};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{FlockOperation, OFlags, XattrFlags, fcntl_lock, lsetxattr};
use rustix::io::Errno;

use crate::report::Report;
use crate::tree::ACL;

/// Copies one file of `dir` up for each question. All must be there, with a body; `link-a` and
/// `link-b` are one file.
pub fn check(report: &mut Report, dir: &str) {
    let at = |name: &str| Path::new(dir).join(name);
    watches(report, &at("watched"));
    locks(report, &at("locked"));
    leases(report, &at("leased"));
    hard_links(report, &at("link-a"), &at("link-b"));
    numbers(report, &at("numbered"));
    maps(report, &at("mapped"));
    acl(report, &at("acl"));
    follow(report, &at("followed"));
}

/// Whether another process may lock the file with `how`: `flock` or `fcntl`.
pub fn try_lock(how: &str, path: &str) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if how == "flock" {
        return match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
    }
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"more")
}

/// What a watch sees of a write that copies the file up, and of one after that.
fn watches(report: &mut Report, path: &Path) {
    let watch = inotify::init(CreateFlags::NONBLOCK).expect("an instance");
    let wanted = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB;
    inotify::add_watch(&watch, path, wanted).expect("a watch");
    for when in ["the first write", "the second write"] {
        append(path).expect("a write");
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        let mut seen = ReadFlags::empty();
        while let Ok(event) = events.next() {
            seen |= event.events();
        }
        let good = seen.contains(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE);
        report.check(good, &format!("inotify of {when}"), format!("{seen:?}"));
    }
}

/// A lock that was taken before the copy-up keeps others out afterwards.
fn locks(report: &mut Report, path: &Path) {
    let mut other = |how: &str, when: &str| {
        let mut child = Command::new("/proc/self/exe");
        let free = child.args(["try-lock", how]).arg(path).status();
        let taken = free.is_ok_and(|status| !status.success());
        report.check(taken, &format!("{how}, {when}"), if taken { "held" } else { "not held" });
    };
    let file = File::open(path).expect("a file");
    file.lock_shared().expect("a lock");
    let shared = FlockOperation::LockShared;
    fcntl_lock(&file, shared).expect("a lock");
    // The child's opening for writing copies it up.
    for how in ["flock", "fcntl"] {
        other(how, "taken before the copy-up");
    }
}

/// A lease on a file below is broken by a writer: its holder gets SIGIO.
fn leases(report: &mut Report, path: &Path) {
    const SIGIO: i32 = 29;
    let ended = Command::new("/proc/self/exe").arg("hold-lease").arg(path).status();
    let signal = ended.as_ref().ok().and_then(ExitStatusExt::signal);
    report.check(signal == Some(SIGIO), "a lease of a file below", format!("{ended:?}"));
}

/// Takes a read lease and then opens the file for writing.
pub fn hold_lease(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    lease(file.as_fd(), false)?;
    let wait = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    OpenOptions::new().append(true).custom_flags(wait).open(path).map(drop)
}

/// The name that is written to leaves the others.
fn hard_links(report: &mut Report, a: &Path, b: &Path) {
    let look = |path: &Path| {
        let found = fs::metadata(path).expect("a file");
        (found.nlink(), found.ino(), found.size())
    };
    let (a0, b0) = (look(a), look(b));
    report.check(a0 == b0 && a0.0 == 2, "hard links below", format!("{a0:?} {b0:?}"));
    append(a).expect("a write");
    let (a1, b1) = (look(a), look(b));
    let apart = a1.2 == a0.2 + 4 && b1 == b0;
    report.check(apart, "hard links after a write", format!("{a1:?} {b1:?}"));
}

fn numbers(report: &mut Report, path: &Path) {
    let look = || fs::metadata(path).map(|found| (found.dev(), found.ino())).expect("a file");
    let before = look();
    append(path).expect("a write");
    let after = look();
    report.check(before == after, "numbers", format!("{before:?} {after:?}"));
    for name in [path.to_owned(), PathBuf::from("/bin/busybox")] {
        report.refused(&format!("a handle of {}", name.display()), handle(&name));
    }
}

/// /proc/PID/maps names the file by device and inode number as stat does.
fn maps(report: &mut Report, path: &Path) {
    let file = File::open(path).expect("a file");
    let map = SharedMap::new(file.as_fd(), 4096, false).expect("a mapping");
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let start = format!("{:x}-", map.address());
    let line = maps.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
    let found = fs::metadata(path).expect("a file");
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let wanted = format!("{major:02x}:{minor:02x} {} ", found.ino());
    report.check(line.contains(&wanted), "maps", format!("{line}, stat {wanted}"));
}

/// An ACL is refused for a file that only EROFS has.
fn acl(report: &mut Report, path: &Path) {
    let set = || lsetxattr(path, "system.posix_acl_access", &ACL, XattrFlags::empty());
    let result = set();
    report.check(result == Err(Errno::OPNOTSUPP), "an ACL at once", format!("{result:?}"));
    fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("chmod");
    report.works("an ACL after chmod", set());
}

/// As `tail -f` does: a descriptor at the end of a file that is then written to.
fn follow(report: &mut Report, path: &Path) {
    let mut file = File::open(path).expect("a file");
    io::copy(&mut file, &mut io::sink()).expect("all of it");
    append(path).expect("a write");
    let more = io::read_to_string(&mut file).unwrap_or_default();
    report.check(more == "more", "tail -f", format!("reads {more:?}"));
}
