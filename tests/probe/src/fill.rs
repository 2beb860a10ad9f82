//! Fills a filesystem by other means than writing to files.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, ioctl_ficlone, setxattr};
use rustix::io::Errno;

/// What one extended attribute takes: it fits a block of ext4, and no inode.
const ATTRIBUTE_BYTES: usize = 3000;
/// ext4 gives no file more than 65000 names.
const NAMES_EACH: u64 = 50_000;

/// Makes at most `most` of `what` in a new directory `dir`; prints how many it has made, and why no
/// more.
pub fn fill(what: &str, dir: &Path, most: u64) {
    let made = fs::create_dir(dir).and_then(|()| match what {
        "names" => until_full(most, |n| name(dir, n)),
        "attributes" => until_full(most, |n| attribute(dir, n)),
        "clones" => until_full(most, |n| clone(dir, n)),
        _ => panic!("nothing fills a filesystem by {what}"),
    });
    match made {
        Ok(made) => println!("{made}"),
        Err(error) => println!("failed: {error}"),
    }
}

fn until_full(most: u64, make: impl Fn(u64) -> io::Result<()>) -> io::Result<String> {
    for made in 0..most {
        match make(made).map_err(|error| (Errno::from_io_error(&error), error)) {
            Ok(()) => {}
            Err((Some(Errno::NOSPC | Errno::DQUOT), _)) => return Ok(format!("{made} full")),
            Err((Some(Errno::OPNOTSUPP | Errno::XDEV), _)) => {
                return Ok(format!("{made} not supported"));
            }
            Err((_, error)) => return Err(error),
        }
    }
    Ok(format!("{most}"))
}

/// A long name: it takes no inode, and the directory grows.
fn name(dir: &Path, n: u64) -> io::Result<()> {
    let file = dir.join((n / NAMES_EACH).to_string());
    if n.is_multiple_of(NAMES_EACH) {
        File::create(&file)?;
    }
    fs::hard_link(&file, dir.join(format!("{n:0>250}")))
}

/// An empty file with a large attribute, unlike all others: ext4 has equal ones once.
fn attribute(dir: &Path, n: u64) -> io::Result<()> {
    let file = dir.join(n.to_string());
    File::create(&file)?;
    let value = format!("{n:0>ATTRIBUTE_BYTES$}");
    Ok(setxattr(&file, "user.large", value.as_bytes(), XattrFlags::empty())?)
}

/// A clone of a file of the base.
fn clone(dir: &Path, n: u64) -> io::Result<()> {
    let clone = File::create(dir.join(n.to_string()))?;
    Ok(ioctl_ficlone(&clone, &File::open("/bin/busybox")?)?)
}
