//! A managed block: Holm's lines in a text file whose other lines are the guest's.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::{Error, Links, Result, Tree};

const BEGIN: &str = "# Holm: written at each start from guest.toml";
const END: &str = "# Holm: end";

/// A longer file is left alone: no person writes one, but a hostile guest may, to use up the host's
/// memory.
const MAX_LENGTH: u64 = 1 << 20;

const NEW: &str = ".holm-block";

/// Puts `lines` at the beginning of the file at `path`, in place of those of the last start.
/// Anything but a regular file, such as a link, is left alone.
pub fn write(tree: &Tree, path: &Path, lines: &str, mode: u32) -> Result<()> {
    let above = path.parent().unwrap_or(Path::new("/"));
    let directory = if lines.is_empty() {
        // Nothing to write, only lines to remove.
        match tree.open(above, Links::Follow) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
            Err(errno) => return Err(Error::io("open the guest's", above, errno)),
        }
    } else {
        tree.directory(above)?
    };
    let name = Path::new(path.file_name().unwrap_or_default());
    replace(&directory, name, lines, mode)
        .map_err(|error| Error::io("write the guest's", path, error))
}

fn replace(directory: &OwnedFd, name: &Path, lines: &str, mode: u32) -> io::Result<()> {
    let Some(old) = read(directory, name)? else { return Ok(()) };
    let new = with_block(&old, lines);
    if new == old {
        return Ok(());
    }
    // Renamed into place: if the start is killed, the guest's own lines are still there.
    let _ = unlinkat(directory, NEW, rustix::fs::AtFlags::empty());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(directory, NEW, flags, Mode::from_raw_mode(mode))?;
    std::fs::File::from(file).write_all(&new)?;
    Ok(renameat(directory, NEW, directory, name)?)
}

/// What the file holds; `None` if it is not one that Holm writes to.
fn read(directory: &OwnedFd, name: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Some(Vec::new())),
        Err(Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let mut text = Vec::new();
    std::fs::File::from(file).take(MAX_LENGTH + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= MAX_LENGTH).then_some(text))
}

/// `text` with these lines of Holm's and no others; without lines there is no block.
pub fn with_block(text: &[u8], lines: &str) -> Vec<u8> {
    let mut new = Vec::new();
    if !lines.is_empty() {
        new.extend(format!("{BEGIN}\n{lines}{END}\n").bytes());
    }
    let mut rest: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let is = |line: &[u8], what: &str| line.trim_ascii_end() == what.as_bytes();
    if let Some(begin) = rest.iter().position(|line| is(line, BEGIN)) {
        let len = rest[begin..].iter().position(|line| is(line, END));
        // Without an end, which lines are Holm's is unknown: only the first is removed.
        rest.drain(begin..=begin + len.unwrap_or(0));
    }
    new.extend(rest.concat());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, lines: &str) -> String {
        String::from_utf8(with_block(text.as_bytes(), lines)).unwrap()
    }

    #[test]
    fn the_block_comes_goes_and_changes() {
        let one = written("", "one\n");
        assert_eq!(one, format!("{BEGIN}\none\n{END}\n"));
        assert_eq!(written(&one, "one\n"), one);
        assert_eq!(written(&one, ""), "");
        assert_eq!(written("", ""), "");
    }

    #[test]
    fn the_other_lines_stay() {
        let text = format!("mine\n{BEGIN}\none\n{END}\nlast, unfinished");
        let two = written(&text, "two\n");
        assert_eq!(two, format!("{BEGIN}\ntwo\n{END}\nmine\nlast, unfinished"));
        assert_eq!(written(&two, ""), "mine\nlast, unfinished");
        assert_eq!(written(&format!("{BEGIN}\ncut\n"), ""), "cut\n");
        assert_eq!(with_block(b"\xff\n", ""), b"\xff\n");
    }
}
