use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use holm_sys::seccomp::Instruction;

use crate::config::{Arch, Security};
use crate::launch::{Error, Result};
use crate::security;
use crate::terminal::Terminals;

/// Process 1 of a guest.
#[derive(Debug, Clone)]
pub struct Init {
    /// Path in the guest.
    pub program: String,
    /// Its argv.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Host name.
    pub hostname: String,
    /// Its standard streams.
    pub stdio: Stdio,
    /// The machine that its programs see.
    pub arch: Arch,
    /// What it may do.
    pub security: Security,
    /// It cannot list the sockets of its network namespace.
    pub hides_sockets: bool,
    /// The kernel kills it when the launcher ends (`PR_SET_PDEATHSIG`).
    pub dies_with_launcher: bool,
    /// Holm's minimal init runs without exec; `program` is not used.
    pub in_place: bool,
}

/// What init's descriptors 0 to 2 are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// The guest's console: a pty of its own devpts.
    Console {
        /// Whether init keeps the pty's master, as descriptor [`holm_proto::CONSOLE_MASTER`], so
        /// that the console outlives a killed monitor. Minimal init does.
        init_keeps_master: bool,
    },
    /// The launcher's standard streams, but each terminal is replaced by a pty of the guest's
    /// devpts: into a terminal of the host the guest could inject input (TIOCSTI).
    Inherit(Terminals),
}

/// What the child needs for its exec, computed before the clone.
#[derive(Debug)]
pub struct Program {
    pub(super) path: CString,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) filter: Vec<Instruction>,
    pub(super) bounding_set: u64,
}

impl Init {
    /// Computes it; an error for privileges that no guest may have.
    pub fn prepare(&self) -> Result<Program> {
        let text = |text: &str| {
            CString::new(text).map_err(|error| Error::step("pass on", text, io::Error::from(error)))
        };
        let env = self.env.iter().map(|(key, value)| text(&format!("{key}={value}")));
        Ok(Program {
            path: text(&self.program)?,
            argv: self.argv.iter().map(|argument| text(argument)).collect::<Result<_>>()?,
            env: env.collect::<Result<_>>()?,
            filter: security::seccomp(&self.security, self.arch, self.hides_sockets),
            bounding_set: security::bounding_set(&self.security)?,
        })
    }
}
