use holm_proto::Ended;
use holm_sys::signal::Caught;

use super::attempt::Attempt;
use super::create::create;
use super::decision::decide;
use super::end_of_run::record_own_end;
use super::error::{Error, Result};
use super::handle::Guest;
use super::ids::allocate_ids;
use super::remove::remove;
use super::requirements::{check_filesystem, check_mounts_answer, explain};
use super::start;
use crate::config::Config;
use crate::disk::Layer;
use crate::disk::limit::Limits;
use crate::exec::relay_until_exit;
use crate::launch::{Running, Stdio};
use crate::process::{drop_scheduling_boost, own_pid};
use crate::record::LastRun;
use crate::step;
use crate::terminal::{self, Terminals};

/// Makes an ephemeral guest, waits for it and removes it. Returns how it ended.
///
/// Its private layer is in memory, and init dies with this process, so nothing is left behind. The
/// calling process must have a single thread.
pub fn run(guest: &Guest<'_>, config: Config) -> Result<Ended> {
    let pool = guest.pool();
    if guest.has_dir()? {
        return Err(Error::Exists(guest.name().clone()));
    }
    refuse_flows(&config)?;
    check_filesystem(pool)?;
    check_mounts_answer(guest, &config)?;
    let ids = allocate_ids(guest, config.security.nesting, own_pid().unsigned_abs())?;
    step::done("ids");
    let layer = Layer::Memory(Limits::of(&config.disk));
    let attempt = decide(*guest, config, ids, layer, true).and_then(Attempt::begin);
    let result = attempt.and_then(|attempt| {
        let ended = launch(&attempt).and_then(Foreground::wait);
        step::done("command");
        if ended.is_ok() {
            attempt.clean_up();
        } else {
            attempt.undo();
        }
        step::done("clean-up");
        ended
    });
    pool.release_ids(guest.name(), ids, None);
    step::done("release");
    result.map_err(|error| explain(pool, error))
}

/// Creates a guest, runs its command, and leaves the guest stopped, with what the command has
/// changed. Returns how the command ended.
pub fn run_kept(guest: &Guest<'_>, text: &str) -> Result<Ended> {
    create(guest, text)?;
    let locked = guest.lock()?;
    let begun = guest.config().and_then(|(_, config)| refuse_flows(&config));
    let begun = begun.and_then(|()| start::begin_alone(&locked));
    let foreground = begun.and_then(|attempt| {
        let launched = launch(&attempt);
        if launched.is_err() {
            attempt.undo();
        }
        launched
    });
    // Other commands may work on the guest while it runs.
    drop(locked);
    let foreground = match foreground {
        Ok(foreground) => foreground,
        Err(error) => {
            // The command has not run, so there is nothing to keep.
            let _ = remove(guest);
            return Err(explain(guest.pool(), error));
        }
    };
    let ended = foreground.wait();
    let locked = guest.lock()?;
    let how = ended.as_ref().map_or_else(|_| "unknown".to_owned(), Ended::to_string);
    record_own_end(&locked, |last| LastRun { ended: how, pending: None, ..last })?;
    ended
}

/// Nobody would record them: such a guest has no monitor.
fn refuse_flows(config: &Config) -> Result<()> {
    if config.net.flows { Err(Error::FlowsInForeground) } else { Ok(()) }
}

/// A guest in the foreground: this process waits for it and passes on input, output and signals.
struct Foreground {
    running: Running,
    terminals: Terminals,
    signals: Caught,
}

impl Foreground {
    fn wait(self) -> Result<Ended> {
        let Self { running, terminals, signals } = self;
        Ok(relay_until_exit(&running.pidfd, running.console, terminals, &signals)?)
    }
}

fn launch(attempt: &Attempt<'_>) -> Result<Foreground> {
    let signals =
        Caught::all().map_err(|error| Error::io("catch the signals of", "this terminal", error))?;
    terminal::refuse_directories()
        .map_err(|error| Error::io("pass on", "the standard streams", error))?;
    let terminals = terminal::standard_streams();
    drop_scheduling_boost();
    let running = attempt.launch(|filter| {
        let assembled = attempt.assemble(Stdio::Inherit(terminals), None, own_pid(), filter)?;
        attempt.release(assembled)
    })?;
    Ok(Foreground { running, terminals, signals })
}
