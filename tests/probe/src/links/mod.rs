//! Every way to change a file, each on a file of its own that other guests share, and what the
//! changer sees afterwards.

mod change;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, lsetxattr, utimensat};

use crate::report::Report;
use crate::tree::CAPABILITY;
use change::{CHANGES, Seen};

/// Of each file.
pub const BYTES: usize = 65_536;
/// When each file was changed.
const TIME: i64 = 1_600_000_000;

/// Makes the files in `dir`, whose name decides about their contents.
pub fn make(dir: &str) -> io::Result<()> {
    let dir = Path::new(dir);
    fs::create_dir_all(dir)?;
    for change in CHANGES {
        let path = dir.join(change.name);
        fs::write(&path, body(dir, change.name))?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644))?;
        lsetxattr(&path, "user.shared", b"yes", XattrFlags::empty())?;
        lsetxattr(&path, "security.capability", &CAPABILITY, XattrFlags::empty())?;
        set_time(&path, TIME)?;
    }
    set_time(dir, TIME)
}

/// Makes every change in `dir`, and looks at what it did.
pub fn make_changes(report: &mut Report, dir: &str) {
    let dir = Path::new(dir);
    for change in CHANGES {
        let path = dir.join(change.name);
        let before = body(dir, change.name);
        report.check(
            fs::read(&path).is_ok_and(|body| body == before),
            &format!("{} before", change.name),
            "as made",
        );
        let outcome = (change.make)(&path);
        match change.seen {
            Seen::Refused(errnos) => report.check(
                outcome.as_ref().is_err_and(|error| {
                    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
                }),
                change.name,
                format!("{outcome:?}"),
            ),
            _ => report.works(change.name, outcome),
        }
        let now = fs::read(&path);
        let found = fs::symlink_metadata(&path);
        let good = match change.seen {
            Seen::Body(changed) => now.is_ok_and(|now| now == changed(before)),
            Seen::Attributes(changed) => {
                now.is_ok_and(|now| now == before)
                    && found.is_ok_and(|found| changed(&path, &found))
            }
            Seen::Gone => now.is_err_and(|error| error.kind() == io::ErrorKind::NotFound),
            Seen::Refused(_) => {
                now.is_ok_and(|now| now == before) && found.is_ok_and(|found| found.mtime() == TIME)
            }
        };
        report.check(good, &format!("{} afterwards", change.name), "as the changer expects");
    }
}

/// Names the changes of attributes: those that must copy no data.
pub fn attributes() {
    for change in CHANGES.iter().filter(|change| matches!(change.seen, Seen::Attributes(_))) {
        println!("{}", change.name);
    }
}

/// Maps a page of a file, and says where; writes to it first if asked to. Keeps it until its input
/// ends.
pub fn hold_page(path: &str, write: bool) -> io::Result<()> {
    let file = File::options().read(true).write(write).open(path)?;
    let mut map = holm_sys::file::SharedMap::new(file.as_fd(), 4096, write)?;
    if write {
        map.set(0, !map.get(0));
    }
    println!("{} {} {}", std::process::id(), map.address(), map.get(0));
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn set_time(path: &Path, seconds: i64) -> io::Result<()> {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// A body that no other file has.
fn body(dir: &Path, name: &str) -> Vec<u8> {
    let line = format!("{} {name} ", dir.file_name().unwrap_or_default().display());
    (0..BYTES).map(|at| line.as_bytes()[at % line.len()] ^ (at / 4096).to_le_bytes()[0]).collect()
}
