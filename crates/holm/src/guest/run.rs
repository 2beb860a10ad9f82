use holm_sys::signal::Caught;

use super::ended::note_own_end;
use super::prepare::{Prepared, fit, reason};
use super::start::Start;
use super::sweep::take_ids;
use super::{Error, Result, create, remove};
use crate::config::Config;
use crate::disk::Layer;
use crate::launch::{Running, Stdio};
use crate::pool::{Name, Pool};
use crate::process::{drop_scheduling_boost, own_pid};
use crate::record::LastRun;
use crate::step;
use crate::terminal::{self, Terminals};
use holm_proto::Ended;

/// Makes a guest for one command, waits for it and removes it; returns how it ended.
///
/// Its private layer is in memory, and init dies with this process: nothing is left behind, and
/// nothing is written. The caller has one thread.
pub fn run(pool: &Pool, name: &Name, config: Config) -> Result<Ended> {
    if pool.guest_dir(name).exists() {
        return Err(Error::Exists(name.clone()));
    }
    fit(pool)?;
    let nesting = config.security.nesting;
    let first = own_pid().unsigned_abs();
    let ids = take_ids(pool, || pool.take_ids(name, nesting, first))?;
    step::done("ids");
    let result = Prepared::new(pool, name, config, ids, Layer::Memory).and_then(|prepared| {
        let ended = launch(&prepared).and_then(Foreground::wait);
        step::done("command");
        if ended.is_ok() {
            prepared.clean_up();
        } else {
            prepared.undo();
        }
        step::done("clean-up");
        ended
    });
    pool.release_ids(name, ids, None);
    step::done("release");
    result.map_err(|error| reason(pool, error))
}

/// The same for a guest that stays, with what the command has changed: its private layer is on disk.
pub fn run_kept(pool: &Pool, name: &Name, text: &str) -> Result<Ended> {
    create(pool, name, text)?;
    let lock = pool.lock_guest(name)?;
    let foreground = Start::prepare(pool, name).and_then(|start| {
        let launched = launch(&start.prepared);
        if launched.is_err() {
            start.prepared.undo();
        }
        launched
    });
    // Other commands reach the guest while it runs.
    drop(lock);
    let foreground = match foreground {
        Ok(foreground) => foreground,
        Err(error) => {
            // There is nothing to keep.
            let _ = remove(pool, name);
            return Err(reason(pool, error));
        }
    };
    let ended = foreground.wait();
    let _lock = pool.lock_guest(name)?;
    let words = ended.as_ref().map_or_else(|_| "unknown".to_owned(), Ended::to_string);
    note_own_end(pool, name, |last| LastRun { ended: words, pending: None, ..last })?;
    ended
}

/// A guest that this process waits for, with its own input and output.
struct Foreground {
    running: Running,
    terminals: Terminals,
    signals: Caught,
}

impl Foreground {
    fn wait(self) -> Result<Ended> {
        let Self { running, terminals, signals } = self;
        crate::exec::converse(&running.pidfd, running.console, terminals, &signals)
            .map_err(|error| Error::Inside(Box::new(error)))
    }
}

fn launch(prepared: &Prepared<'_>) -> Result<Foreground> {
    let signals =
        Caught::all().map_err(|error| Error::io("catch the signals of", "this terminal", error))?;
    terminal::refuse_folders()
        .map_err(|error| Error::io("pass on", "the standard streams", error))?;
    let terminals = terminal::standard_streams();
    drop_scheduling_boost();
    let assembled = prepared.assemble(Stdio::Inherit(terminals), None, own_pid())?;
    let running = prepared.release(assembled)?;
    Ok(Foreground { running, terminals, signals })
}
