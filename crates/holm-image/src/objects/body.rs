//! One body: data and holes in the order of the file.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::tree::RegularFile;

use super::store::{Found, Objects, Temporary};
use crate::error::{Error, Result};
use crate::parallel::PIECE;
use crate::verity::Hasher;

const BLOCK: usize = 4096;

/// A body that is being written.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    objects: &'a Objects,
    /// What comes next in the file.
    buffer: &'a mut Vec<u8>,
    hasher: Hasher,
    file: Option<Temporary>,
    /// The offset of the buffer in the file.
    at: u64,
}

impl<'a> Body<'a> {
    /// Begins a body.
    pub(crate) fn new(objects: &'a Objects, buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        Self { objects, buffer, hasher: Hasher::new(), file: None, at: 0 }
    }

    /// Appends data.
    pub(crate) fn data(&mut self, data: &[u8]) -> Result<()> {
        self.hasher.data(data);
        if self.buffer.len() + data.len() > PIECE {
            self.flush()?;
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Appends `count` zeros, which take no space on disk.
    pub(crate) fn hole(&mut self, count: u64) -> Result<()> {
        if count < PIECE as u64 {
            let zeros = [0; BLOCK];
            let mut left = usize::try_from(count).unwrap_or(0);
            while left > 0 {
                let n = left.min(BLOCK);
                self.data(&zeros[..n])?;
                left -= n;
            }
            return Ok(());
        }
        self.flush()?;
        self.hasher.zeros(count);
        self.at += count;
        Ok(())
    }

    /// Completes the body, and returns the image's reference to it. What the store has by its name
    /// is read into `buffer`.
    pub(crate) fn end(mut self, buffer: &mut [u8]) -> Result<RegularFile<Sha256HashValue>> {
        let size = self.hasher.len();
        if size <= INLINE_CONTENT_MAX_V0 as u64 {
            return Ok(RegularFile::Inline(self.buffer.as_slice().into()));
        }
        if self.file.is_some() {
            self.flush()?;
        }
        let id = Sha256HashValue::from(self.hasher.finish());
        let name = id.to_object_pathname();
        if !self.objects.has(&name) {
            let found = self.objects.look_up(&name, &id, size, buffer)?;
            if found != Found::Body {
                self.objects.check_room(self.buffer.len() as u64)?;
                let file = self.file.map_or_else(|| self.objects.temporary(), Ok)?;
                write_sparse(&file.file, self.buffer, self.at)
                    .map_err(Error::io("write", &file.path))?;
                file.keep(self.objects, &name, size)?;
            }
            self.objects.add(name, size, found);
        }
        Ok(RegularFile::External(id, size))
    }

    /// Writes the buffer to the file.
    fn flush(&mut self) -> Result<()> {
        self.objects.check_room(self.buffer.len() as u64)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.objects.temporary()?),
        };
        write_sparse(&file.file, self.buffer, self.at).map_err(Error::io("write", &file.path))?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Temporary {
    /// Makes this the staged file of a body of `size` bytes.
    pub(super) fn keep(self, objects: &Objects, name: &str, size: u64) -> Result<()> {
        let fail = || Error::io("write", &self.path);
        // Not if it is so long: XFS would give a clone a last block of its own.
        if self.file.metadata().map_err(fail())?.len() != size {
            self.file.set_len(size).map_err(fail())?;
        }
        // The file's own mode is in the metadata image.
        self.file.set_permissions(Permissions::from_mode(0o444)).map_err(fail())?;
        let to = objects.staged(name);
        fs::rename(&self.path, &to).map_err(Error::io("create", &to))
    }
}

/// Writes `data` at `at`. Blocks of zeros become holes.
fn write_sparse(file: &File, data: &[u8], at: u64) -> io::Result<()> {
    let into_block = usize::try_from(at % BLOCK as u64).unwrap_or(0);
    let first = data.len().min((BLOCK - into_block) % BLOCK);
    let (head, blocks) = data.split_at(first);
    file.write_all_at(head, at)?;
    let mut at = at + first as u64;
    let is_hole = |from: usize| {
        let block = &blocks[from..blocks.len().min(from + BLOCK)];
        block == &[0; BLOCK][..block.len()]
    };
    let mut from = 0;
    while from < blocks.len() {
        let hole = is_hole(from);
        let mut to = from + BLOCK;
        while to < blocks.len() && is_hole(to) == hole {
            to += BLOCK;
        }
        let to = to.min(blocks.len());
        if !hole {
            file.write_all_at(&blocks[from..to], at)?;
        }
        at += (to - from) as u64;
        from = to;
    }
    Ok(())
}
