//! Storing the bodies of a source on several CPUs, while its next files are read.
//!
//! The thread that reads the source adds files to the tree, in the source's order. Other threads
//! hash and write their bodies. What an image says of a body is set in the tree when it is known.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use composefs::fsverity::Sha256HashValue;
use composefs::generic_tree::LeafId;
use composefs::tree::{LeafContent, RegularFile, Stat};

use crate::error::{Error, Result};
use crate::objects::Objects;
use crate::parallel::{Buffers, workers};
use crate::tree::Tree;

/// How many bodies wait for a thread at most; some have an open file.
const WAITING_MAX: usize = 32;
/// How often progress is told while no body is done.
const INTERVAL: Duration = Duration::from_millis(100);

type Regular = RegularFile<Sha256HashValue>;
/// Stores one body.
pub(crate) type Store<'a> = Box<dyn FnOnce(&Objects, &mut Buffers) -> Result<Regular> + Send + 'a>;

/// A source that is being read: its tree, and the bodies that are being stored.
pub(crate) struct Bodies<'a> {
    pub(crate) tree: &'a mut Tree,
    /// Tells progress at a path.
    step: &'a mut dyn FnMut(&str),
    /// The path of the last file.
    path: String,
    work: Sender<(LeafId, Store<'a>)>,
    done: Receiver<(LeafId, Result<Regular>)>,
    waiting: usize,
}

impl<'a> Bodies<'a> {
    /// Calls `read`, which reads a source into the tree. Returns when all bodies are stored.
    pub(crate) fn store(
        tree: &'a mut Tree,
        objects: &'a Objects,
        step: &'a mut dyn FnMut(&str),
        read: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (work, queue) = channel();
        let (tell, done) = channel();
        // The last thread to end drops it, so that nobody waits for a thread in vain.
        let queue = Arc::new(Mutex::new(queue));
        thread::scope(|scope| {
            for number in 0..workers() {
                let (queue, tell) = (queue.clone(), tell.clone());
                let work = move || work_on(&queue, &tell, objects);
                match Builder::new().spawn_scoped(scope, work) {
                    // One is enough.
                    Err(error) if number == 0 => return Err(Error::Thread(error)),
                    _ => {}
                }
            }
            drop((queue, tell));
            let mut bodies = Self { tree, step, path: String::new(), work, done, waiting: 0 };
            read(&mut bodies)?;
            while bodies.waiting > 0 {
                bodies.receive()?;
            }
            Ok(())
        })
    }

    /// Adds a file to the tree, whose body is what `store` stores.
    pub(crate) fn file(&mut self, path: &[u8], stat: Stat, store: Store<'a>) -> Result<LeafId> {
        let unknown = LeafContent::Regular(RegularFile::Inline(Box::default()));
        let id = self.tree.file(path, stat, unknown)?;
        self.path = String::from_utf8_lossy(path).into_owned();
        self.step();
        while self.waiting >= WAITING_MAX {
            self.receive()?;
        }
        self.waiting += 1;
        // Threads end after the last body, so that one of them takes it.
        let _ = self.work.send((id, store));
        Ok(id)
    }

    /// Tells progress.
    pub(crate) fn step(&mut self) {
        (self.step)(&self.path);
    }

    /// Waits for a body, and sets in the tree what is known of it.
    fn receive(&mut self) -> Result<()> {
        match self.done.recv_timeout(INTERVAL) {
            Ok((id, body)) => {
                self.waiting -= 1;
                self.tree.set_body(id, body?);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                self.step();
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::source(&self.path, "the thread that stores its body has ended"))
            }
        }
    }
}

/// Stores bodies until there are no more.
fn work_on(
    queue: &Mutex<Receiver<(LeafId, Store<'_>)>>,
    tell: &Sender<(LeafId, Result<Regular>)>,
    objects: &Objects,
) {
    let mut buffers = Buffers::new();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((id, store)) = next else { break };
        // Nobody listens after an error.
        if tell.send((id, store(objects, &mut buffers))).is_err() {
            break;
        }
    }
}
