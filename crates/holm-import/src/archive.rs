//! Taking a tar archive, without unpacking it anywhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::folder::device;
use crate::objects::{Body, Objects, PIECE};
use crate::report::Report;
use crate::tar::{self, Header, Reader};
use crate::tree::{Content, Tree};
use composefs::tree::{LeafContent, Stat};
use flate2::bufread::MultiGzDecoder;
use holm::store::Phase;
use liblzma::bufread::XzDecoder;

/// The longest file, of ext4; in the image one of 2^63 bytes, which costs an archive nothing, would take megabytes.
const FILE_MAX: u64 = 16 << 40;

/// Reads an archive into a tree.
pub struct Unpack<'a> {
    pub tree: &'a mut Tree,
    pub objects: &'a mut Objects,
    pub report: &'a mut Report,
}

impl Unpack<'_> {
    /// Takes the archive `file`, which people know as `name`.
    pub fn run(&mut self, file: File, name: &str) -> Result<()> {
        let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
        let counted = Counted { file, count: std::rc::Rc::default() };
        let count = counted.count.clone();
        let failed =
            |e: io::Error| Error::Io { what: "read the archive", path: name.into(), source: e };
        let mut archive = Reader::new(decompress(counted, name)?);
        let mut found = false;
        while let Some(header) = archive.next().map_err(failed)? {
            let mut step = |note: &str| self.report.step(Phase::Read, count.get(), total, note);
            step(&String::from_utf8_lossy(&header.path));
            take(self.tree, self.objects, &header, &mut archive, &mut step)?;
            found = true;
        }
        if !found {
            return Err(Error::source(name, "the archive is empty"));
        }
        archive.drain().map_err(failed)
    }
}

/// Takes one entry of the archive, whose data comes from `data`.
fn take(
    tree: &mut Tree,
    objects: &mut Objects,
    header: &Header,
    data: &mut impl Read,
    step: &mut impl FnMut(&str),
) -> Result<()> {
    let path = header.path.as_slice();
    let shown = OsStr::from_bytes(path);
    let id = |number: u64| {
        u32::try_from(number)
            .map_err(|_| Error::refused(shown, format!("its owner {number} is no user id")))
    };
    let stat = || -> Result<Stat> {
        Ok(Stat {
            st_mode: header.mode,
            st_uid: id(header.uid)?,
            st_gid: id(header.gid)?,
            st_mtim_sec: header.mtime.0,
            st_mtim_nsec: header.mtime.1,
            xattrs: header.pax.xattrs(path)?,
        })
    };
    let content: Content = match header.kind {
        b'0' => {
            let mut body = objects.body();
            copy(data, header, &mut body, step)?;
            LeafContent::Regular(body.end()?)
        }
        b'1' => return hard_link(tree, path, &header.link),
        b'2' => LeafContent::Symlink(OsStr::from_bytes(&header.link).into()),
        b'3' | b'4' => return Err(device(path)),
        b'5' => return tree.folder(path, stat()?),
        b'6' => LeafContent::Fifo,
        // The archive's label.
        b'V' => return Ok(()),
        kind => {
            let kind = char::from(kind);
            let reason = format!("an archive entry of type `{kind}`, which Holm does not know");
            return Err(Error::refused(shown, reason));
        }
    };
    tree.file(path, stat()?, content).map(drop)
}

fn hard_link(tree: &mut Tree, path: &[u8], target: &[u8]) -> Result<()> {
    let Some(id) = tree.find(target) else {
        let reason = format!(
            "a hard link to {}, which does not come before it in the archive",
            OsStr::from_bytes(target).display()
        );
        return Err(Error::refused(OsStr::from_bytes(path), reason));
    };
    tree.link(path, id)
}

/// Copies an entry's data, its holes as holes.
fn copy(
    data: &mut impl Read,
    header: &Header,
    body: &mut Body<'_>,
    step: &mut impl FnMut(&str),
) -> Result<()> {
    let shown = Path::new(OsStr::from_bytes(&header.path));
    let failed = || Error::io("read from the archive", shown);
    let note = shown.to_string_lossy();
    let mut buffer = vec![0; PIECE];
    let mut piece = |want: u64, body: &mut Body<'_>| -> Result<u64> {
        let want = usize::try_from(want).unwrap_or(PIECE).min(PIECE);
        let n = data.read(&mut buffer[..want]).map_err(failed())?;
        body.data(&buffer[..n])?;
        step(&note);
        Ok(n as u64)
    };
    let Some(map) = &header.sparse else {
        while piece(PIECE as u64, body)? > 0 {}
        return Ok(());
    };
    if map.size > FILE_MAX {
        let reason = format!(
            "a file of {} bytes, of which a base holds {FILE_MAX} at most; leave it out of the archive",
            map.size
        );
        return Err(Error::refused(shown, reason));
    }
    let mut at = 0;
    for &(offset, length) in &map.data {
        body.hole(offset - at)?;
        at = offset;
        while at < offset + length {
            match piece(offset + length - at, body)? {
                0 => return Err(failed()(io::Error::from(io::ErrorKind::UnexpectedEof))),
                n => at += n,
            }
        }
    }
    body.hole(map.size - at)
}

/// The plain archive in `file`, whatever it is compressed with.
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
        [] => return Err(Error::source(name, "there is nothing in it")),
        plain if plain.len() >= 512 && !looks_like_tar(&plain[..512]) => {
            return Err(Error::source(
                name,
                "it is neither a tar archive nor one compressed with gzip, xz or zstd",
            ));
        }
        _ => Box::new(file),
    })
}

/// Whether `block` begins an archive, or is the end of an empty one.
fn looks_like_tar(block: &[u8]) -> bool {
    tar::is_header(block) || block.iter().all(|b| *b == 0)
}

/// A file that counts what was read of it.
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
