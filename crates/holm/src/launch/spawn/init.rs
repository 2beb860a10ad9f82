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
    /// Arguments, the first of which is the name it runs under.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub folder: PathBuf,
    /// Host name.
    pub hostname: String,
    /// Its input and output.
    pub stdio: Stdio,
    /// The machine that its programs see.
    pub arch: Arch,
    /// What it may do.
    pub security: Security,
    /// It is killed when the launcher ends, however that ends.
    pub dies_with_launcher: bool,
    /// Holm's minimal init, without executing its file: `program` is not looked at.
    pub in_place: bool,
}

/// What init's descriptors 0 to 2 are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// The guest's console: a pty of its own devpts. With `keep` init keeps the master as descriptor
    /// [`holm_proto::CONSOLE_MASTER`], so that it outlives every process of Holm.
    Console {
        /// The program is Holm's init, which keeps it.
        keep: bool,
    },
    /// The launcher's own, but for those that are terminals: a guest that got hold of a terminal of the host could type
    /// into it. A pty of the guest's devpts stands for them.
    Inherit(Terminals),
}

/// A program ready to be executed: nothing is allocated between clone and exec that need not be.
#[derive(Debug)]
pub struct Program {
    pub(super) path: CString,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) filter: Vec<Instruction>,
    pub(super) bound: u64,
}

impl Init {
    pub(super) fn prepare(&self) -> Result<Program> {
        let text = |text: &str| {
            CString::new(text).map_err(|error| Error::step("pass on", text, io::Error::from(error)))
        };
        let env = self.env.iter().map(|(key, value)| text(&format!("{key}={value}")));
        Ok(Program {
            path: text(&self.program)?,
            argv: self.argv.iter().map(|word| text(word)).collect::<Result<_>>()?,
            env: env.collect::<Result<_>>()?,
            filter: security::seccomp(&self.security, self.arch),
            bound: security::bounding_set(&self.security)?,
        })
    }
}
