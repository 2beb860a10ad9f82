//! What is wrong with the files of a base, as far as that can be seen without reading all of them:
//! whether they are there, and as long as they should be. An import reads those that it needs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;

use super::error::Error;
use super::objects::Object;
use crate::pool::Pool;

/// Where the superblock of EROFS is, and how much of it is needed.
const SUPERBLOCK: u64 = 1024;
const NEEDED: usize = 40;
const MAGIC: u32 = 0xe0f5_e1e2;

/// What is wrong with a metadata image. Its superblock says how long it is.
pub(super) fn of_image(path: &Path) -> Result<Option<String>, Error> {
    let read = || -> io::Result<(u64, [u8; NEEDED])> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut superblock = [0; NEEDED];
        if length >= SUPERBLOCK + NEEDED as u64 {
            file.read_exact_at(&mut superblock, SUPERBLOCK)?;
        }
        Ok((length, superblock))
    };
    let (length, superblock) = match read() {
        Ok(read) => read,
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            return Ok(Some(format!("its image cannot be read: {error}")));
        }
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    Ok(match image_length(&superblock) {
        None => Some(format!("its image is none: {length} bytes of something else")),
        Some(wanted) if wanted > length => {
            Some(format!("its image is cut off: {length} bytes of {wanted}"))
        }
        Some(_) => None,
    })
}

/// The length of an image according to its superblock; `None` if that is none.
fn image_length(superblock: &[u8; NEEDED]) -> Option<u64> {
    let number = |at: usize| superblock.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
    if number(0)? != MAGIC {
        return None;
    }
    u64::from(number(36)?).checked_mul(1_u64.checked_shl(superblock[12].into())?)
}

/// What is wrong with an object.
pub(super) fn of_object(pool: &Pool, object: &Object) -> Result<Option<String>, Error> {
    let path = &object.path;
    let file = pool.objects_dir().join(path);
    Ok(match fs::metadata(&file) {
        Ok(found) if found.len() == object.size => None,
        Ok(found) => {
            Some(format!("object {path} has {} bytes instead of {}", found.len(), object.size))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("object {path} is missing"))
        }
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            Some(format!("object {path} cannot be looked at: {error}"))
        }
        Err(error) => return Err(Error::io("look at", &file)(error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_images() {
        let mut superblock = [0; NEEDED];
        assert_eq!(image_length(&superblock), None);
        superblock[..4].copy_from_slice(&MAGIC.to_le_bytes());
        superblock[12] = 12;
        superblock[36] = 10;
        assert_eq!(image_length(&superblock), Some(40_960));
        superblock[12] = 64;
        assert_eq!(image_length(&superblock), None);
    }
}
