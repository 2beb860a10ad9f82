//! The life cycle of guests: creating, starting, stopping, restarting and removing them.
//!
//! A guest is a directory `guests/NAME`. A running guest also has a cgroup, which carries
//! its run record ([`crate::record::RunRecord`]) as an extended attribute. If /run is wiped or a
//! monitor is killed, the next command finds everything it needs in these two places.
//!
//! Each verb is a function on a [`Guest`], in a file of its own. A function that needs the guest's
//! lock takes a [`LockedGuest`], which can only be obtained by locking.

mod attempt;
mod autostart;
mod change_network;
mod check_settings;
mod create;
mod decision;
mod directory;
mod end_of_run;
mod ending;
mod error;
mod exec;
mod flow_record;
mod freeze;
mod fsck;
mod handle;
mod ids;
mod init_program;
mod kill;
mod limits;
mod machine_id;
mod monitor_process;
mod parallel;
mod pressure;
mod rebuild;
mod reconcile;
mod release;
mod remove;
mod rename;
mod require_stopped;
mod requirements;
mod restart;
mod restart_policy;
mod run;
mod running;
mod set;
mod signal;
mod start;
mod status;
mod stop;
mod target;
mod unify;
mod usage;
mod wait;

pub use autostart::autostart;
pub use create::create;
pub use end_of_run::end_of_run;
pub use error::{Error, Result};
pub use exec::exec;
pub use freeze::freeze;
pub use fsck::fsck;
pub use handle::{Guest, LockedGuest};
pub use kill::kill;
pub use parallel::{in_parallel, start_in_parallel};
pub use rebuild::rebuild;
pub use reconcile::{ensure_monitor, sweep};
pub use release::release;
pub use remove::{is_protected, remove};
pub use rename::rename;
pub use restart::restart;
pub use run::{run, run_kept};
pub use running::{RunningGuest, running};
pub use set::{Changed, replace, set};
pub use signal::signal;
pub use start::start;
pub use status::{
    Readiness, Status, Summary, is_active, list, names, oom_kills, summary, wait_ready,
};
pub use stop::stop;
pub use unify::{Unified, require_shared, unify};
pub use usage::df;
pub use wait::wait;
