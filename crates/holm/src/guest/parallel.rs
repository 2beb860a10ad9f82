//! Working on several guests in parallel.
//!
//! A guest must be started by a process with a single thread, so each guest gets a worker process.
//! It returns its result in a memory file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use holm_sys::process::{self, CloneResult};
use rustix::fs::MemfdFlags;
use rustix::process::{WaitId, WaitIdOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};

/// How many workers there are at most. `stop` mostly waits, `start` mostly computes.
const WORKERS: usize = 32;

/// Runs `work` for each name in a worker process, and passes the results to `report` in the order
/// of the names, each as early as that allows.
pub fn in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    work: impl Fn(&str) -> T,
    mut report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut waiting: VecDeque<(&str, Worker)> = VecDeque::new();
    let mut finish = |(name, worker): (&str, Worker)| report(name, worker.finish(name));
    for name in names {
        if waiting.len() == WORKERS
            && let Some(first) = waiting.pop_front()
        {
            finish(first);
        }
        waiting.push_back((name, Worker::new(name, || work(name))?));
    }
    waiting.into_iter().for_each(finish);
    Ok(())
}

/// A process that works on one guest, and the memory file for its result.
#[derive(Debug)]
struct Worker {
    pidfd: OwnedFd,
    result: File,
}

impl Worker {
    fn new<T: Serialize>(name: &str, work: impl FnOnce() -> T) -> Result<Self> {
        let failed = |error: io::Error| Error::io("start a worker process for guest", name, error);
        let memory = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC);
        let result = File::from(memory.map_err(|e| failed(e.into()))?);
        match process::clone(0, None).map_err(failed)? {
            CloneResult::Parent { pidfd, .. } => Ok(Self { pidfd, result }),
            CloneResult::Child(_) => {
                let text = serde_json::to_vec(&work()).unwrap_or_default();
                let written = (&result).write_all(&text);
                std::process::exit(i32::from(written.is_err()));
            }
        }
    }

    /// Waits until it has ended, and reads its result; an error if it was killed.
    fn finish<T: DeserializeOwned>(mut self, name: &str) -> Result<T> {
        let failed =
            |error: io::Error| Error::io("wait for the worker process for guest", name, error);
        rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
            .map_err(|e| failed(e.into()))?;
        self.result.seek(SeekFrom::Start(0)).map_err(failed)?;
        let text = io::read_to_string(&self.result).map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| Error::WorkerKilled(name.to_owned()))
    }
}
