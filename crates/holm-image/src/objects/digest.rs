//! The digest of a file of the host.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::parallel::PIECE;
use crate::verity::Hasher;

/// The digest of a file of `size` bytes.
pub(crate) fn digest(file: &File, size: u64, buffer: &mut [u8]) -> io::Result<[u8; 32]> {
    let mut hasher = Hasher::new();
    while hasher.len() < size {
        let data = match seek(file, SeekFrom::Data(hasher.len())) {
            // The rest is a hole.
            Err(Errno::NXIO) => size,
            data => data?.min(size),
        };
        hasher.zeros(data - hasher.len());
        let hole = if data < size { seek(file, SeekFrom::Hole(data))?.min(size) } else { size };
        while hasher.len() < hole {
            let want = usize::try_from(hole - hasher.len()).unwrap_or(PIECE).min(buffer.len());
            match file.read_at(&mut buffer[..want], hasher.len())? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => hasher.data(&buffer[..n]),
            }
        }
    }
    Ok(hasher.finish())
}
