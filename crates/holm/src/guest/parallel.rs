//! The same for several guests at once.
//!
//! Guests are started by a process with a single thread, so each name gets a process of its own, which hands its
//! result back in memory that both share.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use holm_sys::process::{self, Clone};
use rustix::fs::MemfdFlags;
use rustix::process::{WaitId, WaitIdOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};

/// So many at once: `stop` mostly waits, `start` mostly computes.
const AT_ONCE: usize = 32;

/// Does `work` for each name in a process of its own, and hands the results to `report` in the order of the names, each
/// as soon as it is there.
pub fn in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    work: impl Fn(&str) -> T,
    mut report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut waiting: VecDeque<(&str, Worker)> = VecDeque::new();
    let mut finish = |(name, worker): (&str, Worker)| report(name, worker.finish(name));
    for name in names {
        if waiting.len() == AT_ONCE
            && let Some(first) = waiting.pop_front()
        {
            finish(first);
        }
        waiting.push_back((name, Worker::new(name, || work(name))?));
    }
    waiting.into_iter().for_each(finish);
    Ok(())
}

/// A process that works on one guest, and the memory it writes its result into.
#[derive(Debug)]
struct Worker {
    pidfd: OwnedFd,
    result: File,
}

impl Worker {
    fn new<T: Serialize>(name: &str, work: impl FnOnce() -> T) -> Result<Self> {
        let failed =
            |error: io::Error| Error::io("make a process that works on guest", name, error);
        let memory = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC);
        let result = File::from(memory.map_err(|e| failed(e.into()))?);
        match process::clone(0, None).map_err(failed)? {
            Clone::Parent { pidfd, .. } => Ok(Self { pidfd, result }),
            Clone::Child(_) => {
                let text = serde_json::to_vec(&work()).unwrap_or_default();
                let written = (&result).write_all(&text);
                std::process::exit(i32::from(written.is_err()));
            }
        }
    }

    /// Waits for its end; there is no result if it was killed.
    fn finish<T: DeserializeOwned>(mut self, name: &str) -> Result<T> {
        let failed =
            |error: io::Error| Error::io("wait for the process that works on", name, error);
        rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
            .map_err(|e| failed(e.into()))?;
        self.result.seek(SeekFrom::Start(0)).map_err(failed)?;
        let text = io::read_to_string(&self.result).map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| Error::WorkerKilled(name.to_owned()))
    }
}
