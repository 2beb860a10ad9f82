//! What directories take on the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::error::{Error, Result};

/// What each directory takes on the disk, as du(1) counts. It copes with any depth, and with files
/// that disappear meanwhile.
pub(crate) fn disk_usage(dirs: &[PathBuf]) -> Result<HashMap<PathBuf, u64>> {
    if dirs.is_empty() {
        return Ok(HashMap::new());
    }
    let du = Path::new("du");
    let fail = |error| Error::io("run", du, error);
    let names: Vec<u8> =
        dirs.iter().flat_map(|dir| [dir.as_os_str().as_encoded_bytes(), b"\0"].concat()).collect();
    // In memory, so that nobody has to write it while the output is read.
    let input = memfd_create("names", MemfdFlags::CLOEXEC).map(File::from);
    let mut input = input.map_err(|errno| fail(errno.into()))?;
    input.write_all(&names).and_then(|()| input.rewind()).map_err(fail)?;
    let mut child = Command::new(du)
        .args(["--summarize", "--one-file-system", "--block-size=1", "--null", "--files0-from=-"])
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(fail)?;
    // `wait_with_output` panics if a read fails.
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
    let status = child.wait();
    read.and(status).map_err(fail)?;
    Ok(parse_du(&String::from_utf8_lossy(&bytes)))
}

/// Parses `BYTES<tab>PATH` with zero bytes in between.
fn parse_du(text: &str) -> HashMap<PathBuf, u64> {
    let line = |line: &str| {
        let (bytes, path) = line.split_once('\t')?;
        Some((PathBuf::from(path), bytes.parse().ok()?))
    };
    text.split('\0').filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_du() {
        let sizes = parse_du("4096\t/a b\08192\t/c\0nonsense\0");
        assert_eq!(sizes[Path::new("/a b")], 4096);
        assert_eq!(sizes.len(), 2);
    }
}
