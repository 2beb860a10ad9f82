//! Taking a tar archive, without unpacking it anywhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use composefs::tree::{LeafContent, Stat};
use flate2::bufread::MultiGzDecoder;
use holm::store::Phase;
use liblzma::bufread::XzDecoder;
use tar::{Archive, Entry, EntryType};

use crate::error::{Error, Result};
use crate::folder::device;
use crate::objects::{Body, Objects, PIECE};
use crate::pax::Pax;
use crate::report::Report;
use crate::tree::{Content, Tree};

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
        let mut archive = Archive::new(decompress(counted, name)?);
        let mut found = false;
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            self.report.step(Phase::Read, count.get(), total, &entry.path_lossy());
            let report = &mut *self.report;
            let step = |note: &str| report.step(Phase::Read, count.get(), total, note);
            take(self.tree, self.objects, &mut entry, step)?;
            found = true;
        }
        if !found {
            return Err(Error::source(
                name,
                "the archive is empty, or not an archive that tar makes",
            ));
        }
        // What comes after the end matters for the checksum of the compressed data.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
        Ok(())
    }
}

/// Takes one entry of the archive.
fn take(
    tree: &mut Tree,
    objects: &mut Objects,
    entry: &mut Entry<'_, impl Read>,
    mut step: impl FnMut(&str),
) -> Result<()> {
    let pax = Pax::read(entry)?;
    let path = pax.path.clone().unwrap_or_else(|| entry.path_bytes().into_owned());
    let header = entry.header();
    let stat = || -> Result<Stat> {
        let broken = |e: io::Error| Error::refused(OsStr::from_bytes(&path), e.to_string());
        let number = |n: u64| u32::try_from(n).map_err(|e| broken(io::Error::other(e)));
        Ok(Stat {
            st_mode: header.mode().map_err(broken)? & 0o7777,
            st_uid: number(pax.uid.map_or_else(|| header.uid(), Ok).map_err(broken)?)?,
            st_gid: number(pax.gid.map_or_else(|| header.gid(), Ok).map_err(broken)?)?,
            st_mtim_sec: match pax.mtime {
                Some((seconds, _)) => seconds,
                None => header.mtime().map_err(broken)?.cast_signed(),
            },
            st_mtim_nsec: pax.mtime.map_or(0, |(_, nanoseconds)| nanoseconds),
            xattrs: pax.xattrs(&path)?,
        })
    };
    let target = || entry.link_name_bytes().unwrap_or_default();
    let content: Content = match header.entry_type() {
        EntryType::Directory => return tree.folder(&path, stat()?),
        EntryType::Symlink => LeafContent::Symlink(OsStr::from_bytes(&target()).into()),
        EntryType::Fifo => LeafContent::Fifo,
        EntryType::Link => return hard_link(tree, &path, &target()),
        EntryType::Char | EntryType::Block => return Err(device(&path)),
        // An old tar has no type for folders, but a slash at the end.
        EntryType::Regular if path.ends_with(b"/") => return tree.folder(&path, stat()?),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let stat = stat()?;
            let mut body = objects.body();
            copy(entry, &pax, &path, &mut body, &mut step)?;
            return tree.file(&path, stat, LeafContent::Regular(body.end()?)).map(drop);
        }
        // A volume's label, or defaults that GNU tar never writes.
        EntryType::XGlobalHeader => return Ok(()),
        other if other.as_byte() == b'V' => return Ok(()),
        other => {
            let kind = char::from(other.as_byte());
            let reason = format!("an archive entry of type `{kind}`, which Holm does not know");
            return Err(Error::refused(OsStr::from_bytes(&path), reason));
        }
    };
    tree.file(&path, stat()?, content).map(drop)
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
    entry: &mut Entry<'_, impl Read>,
    pax: &Pax,
    path: &[u8],
    body: &mut Body<'_>,
    step: &mut impl FnMut(&str),
) -> Result<()> {
    let shown = Path::new(OsStr::from_bytes(path));
    let failed = || Error::io("read from the archive", shown);
    let note = shown.to_string_lossy();
    let mut buffer = vec![0; PIECE];
    let mut piece = |entry: &mut dyn Read, want: u64, body: &mut Body<'_>| -> Result<u64> {
        let want = usize::try_from(want).unwrap_or(PIECE).min(PIECE);
        let n = entry.read(&mut buffer[..want]).map_err(failed())?;
        body.data(&buffer[..n])?;
        step(&note);
        Ok(n as u64)
    };
    let Some(map) = pax.sparse_map(entry, path)? else {
        while piece(entry, PIECE as u64, body)? > 0 {}
        return Ok(());
    };
    let mut at = 0;
    for (offset, length) in map.data {
        body.hole(offset - at)?;
        at = offset;
        while at < offset + length {
            match piece(entry, offset + length - at, body)? {
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
        plain if plain.len() >= 512 && !looks_like_tar(plain) => {
            return Err(Error::source(
                name,
                "it is neither a tar archive nor one compressed with gzip, xz or zstd",
            ));
        }
        _ => Box::new(file),
    })
}

/// Whether the checksum of the first header is right; the oldest archives have nothing else.
fn looks_like_tar(block: &[u8]) -> bool {
    let header = tar::Header::from_byte_slice(&block[..512]);
    let sum: u32 = block[..148].iter().chain(&block[156..512]).map(|b| u32::from(*b)).sum();
    header.cksum().is_ok_and(|stored| stored == sum + 8 * u32::from(b' '))
        || block[..512].iter().all(|b| *b == 0)
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

/// A path for a person.
trait PathLossy {
    fn path_lossy(&self) -> String;
}

impl<R: Read> PathLossy for Entry<'_, R> {
    fn path_lossy(&self) -> String {
        String::from_utf8_lossy(&self.path_bytes()).into_owned()
    }
}
