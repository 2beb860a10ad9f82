//! A body that one thread reads from an archive and another stores.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use composefs::fsverity::Sha256HashValue;
use composefs::tree::RegularFile;

use crate::error::{Error, Result};
use crate::objects::{Body, Objects};
use crate::parallel::Buffers;

/// How many pieces of a body wait at most.
const WAITING_MAX: usize = 2;

/// What comes next in a body.
enum Piece {
    Data(Vec<u8>),
    Hole(u64),
    /// Nothing. A body without it was not read to its end.
    End,
}

/// Where the pieces of a body are sent to. That a thread no longer takes them, because it could not
/// store one, is told by the thread itself.
pub struct Pieces(SyncSender<Piece>);

impl Pieces {
    pub fn data(&self, bytes: Vec<u8>) {
        let _ = self.0.send(Piece::Data(bytes));
    }

    pub fn hole(&self, count: u64) {
        let _ = self.0.send(Piece::Hole(count));
    }

    pub fn end(&self) {
        let _ = self.0.send(Piece::End);
    }
}

/// Where the pieces of a body come from.
pub struct Stream {
    pieces: Receiver<Piece>,
    path: PathBuf,
}

/// A stream for the body of the file at `path`.
pub fn new(path: &Path) -> (Pieces, Stream) {
    let (send, pieces) = sync_channel(WAITING_MAX);
    (Pieces(send), Stream { pieces, path: path.to_owned() })
}

impl Stream {
    /// Stores the body.
    pub fn store(
        self,
        objects: &Objects,
        buffers: &mut Buffers,
    ) -> Result<RegularFile<Sha256HashValue>> {
        let Buffers { read, write } = buffers;
        let mut body = Body::new(objects, write);
        loop {
            match self.pieces.recv() {
                Ok(Piece::Data(bytes)) => body.data(&bytes)?,
                Ok(Piece::Hole(count)) => body.hole(count)?,
                Ok(Piece::End) => return body.end(read),
                Err(_) => {
                    let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(Error::io("read from the archive", &self.path)(cut));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_stream_without_its_end_is_no_body() {
        let dir = std::env::temp_dir().join(format!("holm-stream-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let objects = Objects::open(dir.clone(), dir.join("new")).unwrap();
        let store = |ends: bool| {
            let (pieces, stream) = new(Path::new("file"));
            pieces.data(vec![7; 100]);
            if ends {
                pieces.end();
            }
            drop(pieces);
            stream.store(&objects, &mut Buffers::new())
        };
        assert!(matches!(store(true).unwrap(), RegularFile::External(_, 100)));
        assert_eq!(store(false).unwrap_err().to_string(), "cannot read from the archive file");
        fs::remove_dir_all(&dir).unwrap();
    }
}
