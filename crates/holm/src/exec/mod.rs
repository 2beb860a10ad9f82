//! Running a command in a running guest.
//!
//! One clone: this process sets the guest's pid namespace for its children, makes one in the
//! guest's cgroup, and that child joins the other namespaces, drops what the guest's init has
//! dropped, and executes the command.
//!
//! The guest is given as its run record and its cgroup; who looks it up is above.

mod child;
mod command;
mod error;
mod foreground;
mod null_stdio;
mod spawn;
mod user;

pub use command::Command;
pub use error::{Error, Result};
pub use foreground::exec;
pub(crate) use foreground::relay_until_exit;
pub(crate) use null_stdio::exec_with_null_stdio;
