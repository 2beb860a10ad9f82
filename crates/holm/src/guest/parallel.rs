//! Working on several guests in parallel.
//!
//! A guest must be started by a process with a single thread, so each guest gets a worker process.
//! It returns its result in a memory file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use holm_sys::process::{self, CloneResult};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{
    Signal, WaitId, WaitIdOptions, pidfd_send_signal, set_parent_process_death_signal,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};
use super::pressure::Pressure;

/// How many workers there are at most. `stop` mostly waits, `start` mostly computes.
const WORKERS: usize = 32;
/// How many guests for each CPU may boot at once while the host is under pressure.
const BOOTING: usize = 2;

/// Runs `work` for each name in a worker process, and passes the results to `report` in the order
/// of the names, each as early as that allows.
pub fn in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    work: impl Fn(&str) -> T,
    report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut workers = Workers { report, waiting: VecDeque::new(), settling: VecDeque::new() };
    for name in names {
        if workers.waiting.len() == WORKERS {
            workers.finish_first();
        }
        workers.waiting.push_back((name, Worker::new(name, false, || work(name), || ())?));
    }
    while workers.finish_first() {}
    Ok(())
}

/// The same for work that starts guests. Those of which `boots` says so are busy for a while
/// afterwards: `settle` returns when one is not, and is called in its worker. While the host is
/// under pressure, such a guest is started only when another has settled, so that those that boot
/// do not take from each other until all of them are late. Guests of the last names are not waited
/// for.
pub fn start_in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    boots: impl Fn(&str) -> bool,
    work: impl Fn(&str) -> T,
    settle: impl Fn(&str),
    report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let booting = BOOTING * thread::available_parallelism().map_or(1, usize::from);
    let mut pressure = Pressure::watch();
    let mut workers = Workers { report, waiting: VecDeque::new(), settling: VecDeque::new() };
    for name in names {
        if workers.waiting.len() == WORKERS {
            workers.finish_first();
        }
        let boots = boots(name);
        while boots && workers.booting() >= booting && pressure.is_high() {
            if !workers.settle_first() {
                workers.finish_first();
            }
        }
        let after = || {
            if boots {
                settle(name);
            }
        };
        workers.waiting.push_back((name, Worker::new(name, boots, || work(name), after)?));
    }
    while workers.finish_first() {}
    Ok(())
}

/// Workers whose results are not known yet, and after them those that have only to settle.
struct Workers<'a, R> {
    report: R,
    waiting: VecDeque<(&'a str, Worker)>,
    settling: VecDeque<Worker>,
}

impl<R> Workers<'_, R> {
    /// How many have a guest that boots. Those that have settled are not counted.
    fn booting(&mut self) -> usize {
        self.settling.retain(|worker| !worker.has_ended());
        let all = self.waiting.iter().map(|(_, worker)| worker).chain(&self.settling);
        all.filter(|worker| worker.boots).count()
    }

    /// Waits for the result of the first that has not reported it; whether there was one.
    fn finish_first<T: DeserializeOwned>(&mut self) -> bool
    where
        R: FnMut(&str, Result<T>),
    {
        let Some((name, mut worker)) = self.waiting.pop_front() else { return false };
        (self.report)(name, worker.result(name));
        self.settling.push_back(worker);
        // Without pressure nobody waits for them.
        if self.settling.len() > WORKERS {
            self.settling.pop_front();
        }
        true
    }

    /// Waits until the first of the others has settled; whether there was one.
    fn settle_first(&mut self) -> bool {
        self.settling.pop_front().map(|worker| worker.wait(WaitIdOptions::EXITED)).is_some()
    }
}

/// A process that works on one guest, and the memory file for its result.
#[derive(Debug)]
struct Worker {
    pidfd: OwnedFd,
    result: File,
    /// Readable when the result is complete.
    done: OwnedFd,
    /// Whether the result was read, so that nothing is lost if the worker ends.
    known: bool,
    /// Whether its guest is busy after its start.
    boots: bool,
}

impl Worker {
    /// `after` is called in the worker when its result is complete.
    fn new<T: Serialize>(
        name: &str,
        boots: bool,
        work: impl FnOnce() -> T,
        after: impl FnOnce(),
    ) -> Result<Self> {
        let failed = |error: io::Error| Error::io("start a worker process for guest", name, error);
        let memory = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC);
        let result = File::from(memory.map_err(|e| failed(e.into()))?);
        let done = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        match process::clone(0, None).map_err(failed)? {
            CloneResult::Parent { pidfd, .. } => {
                Ok(Self { pidfd, result, done, known: false, boots })
            }
            CloneResult::Child(_) => {
                let text = serde_json::to_vec(&work()).unwrap_or_default();
                let written = (&result).write_all(&text);
                // What follows is for the others that the parent starts.
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                if rustix::io::write(&done, &1_u64.to_ne_bytes()).is_ok() {
                    after();
                }
                std::process::exit(i32::from(written.is_err()));
            }
        }
    }

    /// Waits for its result, and reads it; an error if it was killed.
    fn result<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let failed =
            |error: io::Error| Error::io("wait for the worker process for guest", name, error);
        let mut fds =
            [PollFd::new(&self.done, PollFlags::IN), PollFd::new(&self.pidfd, PollFlags::IN)];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        self.known = true;
        self.result.seek(SeekFrom::Start(0)).map_err(failed)?;
        let text = io::read_to_string(&self.result).map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| Error::WorkerKilled(name.to_owned()))
    }

    fn has_ended(&self) -> bool {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Whether it has ended, after waiting as the options say.
    fn wait(&self, options: WaitIdOptions) -> bool {
        matches!(rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options), Ok(Some(_)))
    }
}

impl Drop for Worker {
    /// A guest that it waits for settles without it.
    fn drop(&mut self) {
        if self.known {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            self.wait(WaitIdOptions::EXITED);
        }
    }
}
