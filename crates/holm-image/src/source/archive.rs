//! Reading a tar archive, without unpacking it anywhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use composefs::tree::{LeafContent, Stat};
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;

use super::Progress;
use super::stream;
use crate::bodies::{Bodies, Store};
use crate::error::{Error, Result};
use crate::objects::{Body, Objects};
use crate::parallel::{Buffers, PIECE};
use crate::tar::{self, Entry, Reader};
use crate::tree::{Content, Tree};

/// The longest file, as in ext4. A hole of 2^63 bytes is cheap in an archive, but would take
/// megabytes in the image.
const FILE_MAX: u64 = 16 << 40;

/// Reads the archive `file`; `name` is its name in errors.
pub fn read(
    file: File,
    name: &str,
    tree: &mut Tree,
    objects: &Objects,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
    let counted = Counted { file, count: std::rc::Rc::default() };
    let count = counted.count.clone();
    let failed =
        |e: io::Error| Error::Io { what: "read the archive", path: name.into(), source: e };
    let mut archive = Reader::new(decompress(counted, name)?);
    let mut step = |path: &str| progress(count.get(), total, path);
    Bodies::store(tree, objects, &mut step, |bodies| {
        let mut found = false;
        while let Some(entry) = archive.next_entry().map_err(failed)? {
            read_entry(bodies, &entry, &mut archive)?;
            found = true;
        }
        if !found {
            return Err(Error::source(name, "the archive is empty"));
        }
        archive.drain().map_err(failed)
    })
}

/// Reads one entry of the archive, whose data comes from `data`.
fn read_entry(bodies: &mut Bodies<'_>, entry: &Entry, data: &mut impl Read) -> Result<()> {
    let path = entry.path.as_slice();
    let id = |number: u64| {
        u32::try_from(number)
            .map_err(|_| Error::refused(path, format!("its owner {number} is not a user id")))
    };
    let stat = || -> Result<Stat> {
        Ok(Stat {
            st_mode: entry.mode,
            st_uid: id(entry.uid)?,
            st_gid: id(entry.gid)?,
            st_mtim_sec: entry.mtime.0,
            st_mtim_nsec: entry.mtime.1,
            xattrs: entry.pax.xattrs(path)?,
        })
    };
    let content: Content = match entry.kind {
        b'0' => return file(bodies, entry, stat()?, data),
        b'1' => return hard_link(bodies.tree, path, &entry.link),
        b'2' => LeafContent::Symlink(OsStr::from_bytes(&entry.link).into()),
        b'3' | b'4' => return bodies.tree.leave_out(path),
        b'5' => return bodies.tree.directory(path, stat()?),
        b'6' => LeafContent::Fifo,
        // A volume label.
        b'V' => return Ok(()),
        kind => {
            let kind = char::from(kind);
            let reason = format!("an archive entry of unknown type `{kind}`");
            return Err(Error::refused(path, reason));
        }
    };
    bodies.tree.file(path, stat()?, content).map(drop)
}

fn hard_link(tree: &mut Tree, path: &[u8], target: &[u8]) -> Result<()> {
    let Some(id) = tree.find(target) else {
        let reason = format!(
            "a hard link to {}, which does not come before it in the archive",
            OsStr::from_bytes(target).display()
        );
        return Err(Error::refused(path, reason));
    };
    tree.link(path, id)
}

/// Adds a file, whose data and holes another thread stores.
fn file(bodies: &mut Bodies<'_>, entry: &Entry, stat: Stat, data: &mut impl Read) -> Result<()> {
    let shown = Path::new(OsStr::from_bytes(&entry.path));
    let mut piece = |most: u64| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = data.by_ref().take(most.min(PIECE as u64)).read_to_end(&mut bytes);
        read.map_err(Error::io("read from the archive", shown))?;
        Ok(bytes)
    };
    let mut first = if entry.sparse.is_none() { piece(PIECE as u64)? } else { Vec::new() };
    if entry.sparse.is_none() && first.len() < PIECE {
        // Most files: a thread is woken once for each.
        let store: Store<'_> = Box::new(move |objects, Buffers { read, write }| {
            let mut body = Body::new(objects, write);
            body.data(&first)?;
            body.end(read)
        });
        return bodies.file(&entry.path, stat, store).map(drop);
    }
    let (pieces, stream) = stream::new(shown);
    bodies.file(&entry.path, stat, Box::new(|objects, buffers| stream.store(objects, buffers)))?;
    let mut send = |bytes: Vec<u8>| {
        let count = bytes.len() as u64;
        pieces.data(bytes);
        bodies.step();
        count
    };
    let Some(map) = &entry.sparse else {
        while send(first) > 0 {
            first = piece(PIECE as u64)?;
        }
        pieces.end();
        return Ok(());
    };
    if map.size > FILE_MAX {
        let reason = format!(
            "a file of {} bytes; {FILE_MAX} are possible in a base, so leave it out of the archive",
            map.size
        );
        return Err(Error::refused(&entry.path, reason));
    }
    let mut at = 0;
    for &(offset, length) in &map.data {
        pieces.hole(offset - at);
        at = offset;
        while at < offset + length {
            match send(piece(offset + length - at)?) {
                0 => {
                    let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(Error::io("read from the archive", shown)(cut));
                }
                n => at += n,
            }
        }
    }
    pieces.hole(map.size - at);
    pieces.end();
    Ok(())
}

/// The archive in `file`, decompressed.
fn decompress(file: Counted, name: &str) -> Result<Box<dyn Read>> {
    let mut file = BufReader::with_capacity(PIECE, file);
    let start = file.fill_buf().map_err(|e| Error::io("read", Path::new(name))(e))?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzDecoder::new_multi_decoder(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::Decoder::with_buffer(file);
            Box::new(decoder.map_err(|e| Error::io("decompress", Path::new(name))(e))?)
        }
        [b'B', b'Z', b'h', ..] => {
            return Err(Error::source(
                name,
                "bzip2 is not supported: `bzip2 -dc FILE | holm base import NAME -`",
            ));
        }
        [] => return Err(Error::source(name, "it is empty")),
        plain if plain.first_chunk().is_some_and(|block| !looks_like_tar(block)) => {
            return Err(Error::source(
                name,
                "it is neither a tar archive nor one compressed with gzip, xz or zstd",
            ));
        }
        _ => Box::new(file),
    })
}

/// Whether `block` is the start of an archive, or the end of an empty one.
fn looks_like_tar(block: &[u8; tar::BLOCK]) -> bool {
    tar::is_header(block) || block.iter().all(|b| *b == 0)
}

/// A file that counts the bytes read from it.
struct Counted {
    file: File,
    count: std::rc::Rc<std::cell::Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.count.set(self.count.get() + n as u64);
        Ok(n)
    }
}
