//! The same for several guests at once.
//!
//! Guests are started by a process with a single thread, so each name gets a process of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use clap::Args;
use holm::guest;
use holm::pool::{self, Pool};
use holm_sys::process::{self, Clone};
use rustix::fs::MemfdFlags;
use rustix::process::{WaitId, WaitIdOptions};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::term;
use crate::verb::Outcome;

/// So many at once: `stop` mostly waits, `start` mostly computes.
const AT_ONCE: usize = 32;

/// Which guests.
#[derive(Debug, Args)]
pub struct Names {
    /// The guests
    #[arg(id = "names", value_name = "NAME", required_unless_present = "all")]
    given: Vec<String>,
    /// All guests
    #[arg(long, short, conflicts_with = "names")]
    all: bool,
    #[arg(skip)]
    of_run: bool,
}

impl Names {
    /// These, or all.
    pub fn new(names: Vec<String>, all: bool) -> Self {
        Self { given: names, all, of_run: false }
    }

    /// The same; all guests are also those of `holm run`, which have no folder.
    pub fn with_those_of_run(self) -> Self {
        Self { of_run: true, ..self }
    }

    /// Whether more than one answer may come.
    pub fn are_several(&self) -> bool {
        self.all || self.given.len() > 1
    }

    /// Whether these are all guests, whatever their state.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The names, each once.
    fn list(self, pool: &Pool) -> Result<Vec<String>, Failure> {
        if self.all {
            let all = if self.of_run { guest::names(pool)? } else { pool.guests()? };
            return Ok(all.iter().map(ToString::to_string).collect());
        }
        let mut there = std::collections::HashSet::new();
        Ok(self.given.into_iter().filter(|n| there.insert(n.clone())).collect())
    }

    /// Does `work` for each, and says what came of it in the order of the names.
    ///
    /// `work` gives the sentence that tells of success, and what `--json` tells: itself for one name that was given,
    /// else in an array, however many there are.
    pub fn each(
        self,
        context: &Context,
        work: impl Fn(&Pool, &str) -> Result<(String, Value), Failure>,
    ) -> Outcome {
        let pool = context.pool()?;
        if let ([name], false) = (self.given.as_slice(), self.all) {
            // The common case needs no other process, and ends as any verb does.
            let (text, told) = work(&pool, name)?;
            report(context, &text, &told);
            return Ok(0);
        }
        let mut all = Vec::new();
        let worst = at_once(context, &self.list(&pool)?, &mut all, |name| work(&pool, name))?;
        report_all(context, all);
        Ok(worst)
    }
}

/// Does `work` for each name in processes of their own. Text is printed at once; what `--json` tells is added to `all`.
pub fn at_once(
    context: &Context,
    names: &[String],
    all: &mut Vec<Value>,
    work: impl Fn(&str) -> Result<(String, Value), Failure>,
) -> Outcome {
    let mut waiting: VecDeque<Worker> = VecDeque::new();
    let mut worst = 0;
    for name in names {
        if waiting.len() == AT_ONCE
            && let Some(first) = waiting.pop_front()
        {
            worst = worst.max(first.finish(context, all)?);
        }
        waiting.push_back(Worker::new(name, context, || work(name))?);
    }
    for worker in waiting {
        worst = worst.max(worker.finish(context, all)?);
    }
    Ok(worst)
}

/// Whether `--all` means others: a guest does not run, or is gone by now.
pub fn is_over(error: &guest::Error) -> bool {
    matches!(error, guest::Error::NotRunning(_) | guest::Error::Pool(pool::Error::NoGuest { .. }))
}

/// What `--json` tells of a name that something went wrong with, among others.
pub fn failed(name: &str, failure: &Failure) -> Value {
    json!({ "name": name, "error": failure.json() })
}

/// Says with `--json` what came of several.
pub fn report_all(context: &Context, all: Vec<Value>) {
    if context.json {
        term::print(&format!("{}\n", Value::from(all)));
    }
}

/// Says what came of a verb.
pub fn report(context: &Context, text: &str, told: &Value) {
    if context.json {
        term::print(&format!("{told}\n"));
    } else if !context.quiet && !text.is_empty() {
        term::print(&format!("{text}\n"));
    }
}

/// A process that works on one guest, and the memory it writes its result into.
struct Worker {
    name: String,
    pidfd: OwnedFd,
    result: File,
}

impl Worker {
    fn new(
        name: &str,
        context: &Context,
        work: impl FnOnce() -> Result<(String, Value), Failure>,
    ) -> Result<Self, Failure> {
        let result = File::from(rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC)?);
        match process::clone(0, None)? {
            Clone::Parent { pidfd, .. } => Ok(Self { name: name.to_owned(), pidfd, result }),
            Clone::Child => {
                let told = match work() {
                    Ok((text, told)) => json!({ "text": text, "told": told }),
                    Err(failure) => json!({
                        "error": failure.json(),
                        "text": failure.text(context.colour_errors),
                    }),
                };
                let written = (&result).write_all(told.to_string().as_bytes());
                std::process::exit(i32::from(written.is_err()));
            }
        }
    }

    /// Waits for the end and tells of it.
    fn finish(mut self, context: &Context, all: &mut Vec<Value>) -> Outcome {
        rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)?;
        let mut text = String::new();
        self.result.seek(SeekFrom::Start(0))?;
        self.result.read_to_string(&mut text)?;
        let lost = || {
            let message = format!("the process that worked on {} was killed", self.name);
            json!({ "error": { "message": message }, "text": format!("error: {message}\n") })
        };
        let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| lost());
        let said = result["text"].as_str().unwrap_or_default();
        let failed = !result["error"].is_null();
        match (context.json, failed) {
            (true, true) => all.push(json!({ "name": self.name, "error": result["error"] })),
            (true, false) => all.push(result["told"].clone()),
            (false, true) => term::print_error(said),
            (false, false) => report(context, said, &Value::Null),
        }
        Ok(if failed { FAILED } else { 0 })
    }
}
