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
    Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_send_signal, set_parent_process_death_signal,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};
use super::pressure::Pressure;

/// How many workers there are at most. `stop` mostly waits, `start` mostly computes.
const WORKERS: usize = 32;
/// How many guests for each CPU may boot at once while the host is under pressure.
const BOOTING: usize = 2;
/// The exit status of a worker after whose work nothing is busy.
const IDLE: i32 = 2;

/// Runs `work` for each name in a worker process, and passes the results to `report` in the order
/// of the names, each as early as that allows.
pub fn in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    work: impl Fn(&str) -> T,
    report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut workers = Workers::new(report);
    for name in names {
        if workers.waiting.len() == WORKERS {
            workers.finish_first();
        }
        workers.waiting.push_back((name, Worker::new(name, || work(name), || false)?));
    }
    while workers.finish_first() {}
    Ok(())
}

/// The same for work that starts guests, which may be busy for a while afterwards: `settle` returns
/// when a guest is not, with whether it was at all, and is called in its worker. While the host is
/// under pressure, a guest is started only when another has settled, so that those that boot do not
/// take from each other until all of them are late. Those that do not boot make room for more at
/// once: half of a start is waiting for the kernel. Guests of the last names are not waited for.
pub fn start_in_parallel<T: Serialize + DeserializeOwned>(
    names: &[String],
    work: impl Fn(&str) -> T,
    settle: impl Fn(&str) -> bool,
    report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut pressure = Pressure::watch();
    let mut workers = Workers::new(report);
    for name in names {
        if workers.waiting.len() == WORKERS {
            workers.finish_first();
        }
        while workers.count() >= workers.most && pressure.is_high() {
            if !workers.settle_first() {
                workers.finish_first();
            }
        }
        workers.waiting.push_back((name, Worker::new(name, || work(name), || settle(name))?));
    }
    while workers.finish_first() {}
    Ok(())
}

/// Workers whose results are not known yet, and after them those that have only to settle.
struct Workers<'a, R> {
    report: R,
    waiting: VecDeque<(&'a str, Worker)>,
    settling: VecDeque<Worker>,
    /// How many there may be under pressure.
    most: usize,
}

impl<R> Workers<'_, R> {
    fn new(report: R) -> Self {
        Self { report, waiting: VecDeque::new(), settling: VecDeque::new(), most: booting() }
    }

    /// How many there are. Those that have settled are not counted.
    fn count(&mut self) -> usize {
        let most = &mut self.most;
        self.settling.retain(|worker| match worker.ended() {
            Some(ended) => {
                *most = next_most(*most, &ended);
                false
            }
            None => true,
        });
        self.waiting.len() + self.settling.len()
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
        let Some(worker) = self.settling.pop_front() else { return false };
        if let Some(ended) = worker.wait(WaitIdOptions::EXITED) {
            self.most = next_most(self.most, &ended);
        }
        true
    }
}

fn booting() -> usize {
    BOOTING * thread::available_parallelism().map_or(1, usize::from)
}

/// How many workers there may be under pressure after one of `most` has ended: more if its guest
/// does not boot, and as few as may boot at once if it does.
fn next_most(most: usize, ended: &WaitIdStatus) -> usize {
    let few = booting();
    if ended.exit_status() == Some(IDLE) { most.max(WORKERS.min(most + few)) } else { few }
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
}

impl Worker {
    /// `after` is called in the worker when its result is complete, and returns whether something
    /// was busy.
    fn new<T: Serialize>(
        name: &str,
        work: impl FnOnce() -> T,
        after: impl FnOnce() -> bool,
    ) -> Result<Self> {
        let failed = |error: io::Error| Error::io("start a worker process for guest", name, error);
        let memory = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC);
        let result = File::from(memory.map_err(|e| failed(e.into()))?);
        let done = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        match process::clone(0, None).map_err(failed)? {
            CloneResult::Parent { pidfd, .. } => Ok(Self { pidfd, result, done, known: false }),
            CloneResult::Child(_) => {
                let text = serde_json::to_vec(&work()).unwrap_or_default();
                let written = (&result).write_all(&text);
                // What follows is for the others that the parent starts.
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                let told = rustix::io::write(&done, &1_u64.to_ne_bytes()).is_ok();
                let idle = written.is_ok() && told && !after();
                std::process::exit(if idle { IDLE } else { 0 });
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

    /// How it has ended, if it has.
    fn ended(&self) -> Option<WaitIdStatus> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    fn wait(&self, options: WaitIdOptions) -> Option<WaitIdStatus> {
        rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options).ok().flatten()
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
