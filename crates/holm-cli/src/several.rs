//! The same for several guests at once.

use clap::Args;
use holm::guest;
use holm::pool::{self, Pool};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::verb::Outcome;
use crate::{output, term};

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
    ephemeral: bool,
    #[arg(skip)]
    look: bool,
}

impl Names {
    /// These, or all.
    pub fn new(names: Vec<String>, all: bool) -> Self {
        Self { given: names, all, ephemeral: false, look: false }
    }

    /// The same; `--all` includes ephemeral guests, which have no directory.
    pub fn including_ephemeral(self) -> Self {
        Self { ephemeral: true, ..self }
    }

    /// The same for a verb that only looks.
    pub fn looking(self) -> Self {
        Self { look: true, ..self }
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
    pub fn list(&self, pool: &Pool) -> Result<Vec<String>, Failure> {
        if self.all {
            let all = if self.ephemeral { guest::names(pool)? } else { pool.guests()? };
            return Ok(all.iter().map(ToString::to_string).collect());
        }
        let mut there = std::collections::HashSet::new();
        Ok(self.given.iter().filter(|n| there.insert(n.as_str())).cloned().collect())
    }

    /// Does `work` for each, and reports the results in the order of the names.
    ///
    /// `work` gives the text that is printed, and the document that is printed with `--json`: as it
    /// is for one name that was given, else in an array, however many there are.
    pub fn each(
        self,
        context: &Context,
        work: impl Fn(&Pool, &str) -> Result<(String, String), Failure>,
    ) -> Outcome {
        self.run(context, &work, |pool, names, answers| {
            guest::in_parallel(
                names,
                |name| Answer::new(context, name, work(pool, name)),
                |name, answer| answers.add(name, answer),
            )
        })
    }

    /// The same for work that starts guests; see [`guest::start_in_parallel`].
    pub fn start_each(
        self,
        context: &Context,
        boots: impl Fn(&Pool, &str) -> bool,
        work: impl Fn(&Pool, &str) -> Result<(String, String), Failure>,
        settle: impl Fn(&Pool, &str),
    ) -> Outcome {
        self.run(context, &work, |pool, names, answers| {
            guest::start_in_parallel(
                names,
                |name| boots(pool, name),
                |name| Answer::new(context, name, work(pool, name)),
                |name| settle(pool, name),
                |name, answer| answers.add(name, answer),
            )
        })
    }

    fn run(
        self,
        context: &Context,
        work: impl Fn(&Pool, &str) -> Result<(String, String), Failure>,
        all: impl FnOnce(&Pool, &[String], &mut Answers<'_>) -> guest::Result<()>,
    ) -> Outcome {
        let pool = if self.look { context.look_if_any() } else { context.pool_if_any() };
        let Some(pool) = pool? else {
            if self.all {
                return Ok(Answers::new(context).finish());
            }
            return Err(context.no_root());
        };
        if let ([name], false) = (self.given.as_slice(), self.all) {
            // The common case needs no other process, and ends as any verb does.
            let (text, json) = work(&pool, name).map_err(|failure| failure.of(name))?;
            report(context, &text, &json);
            return Ok(0);
        }
        let mut answers = Answers::new(context);
        all(&pool, &self.list(&pool)?, &mut answers)?;
        Ok(answers.finish())
    }
}

/// The result of one name, as the process that worked on it hands it over.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// What is printed without `--json`: the error, if it failed.
    text: String,
    /// What is printed with `--json`, a document.
    json: String,
    failed: bool,
}

impl Answer {
    /// The result of `name`.
    pub fn new(context: &Context, name: &str, done: Result<(String, String), Failure>) -> Self {
        match done {
            Ok((text, json)) => Self { text, json, failed: false },
            Err(failure) => Self {
                text: failure.text(context.colour_errors),
                json: failure.of(name).json(),
                failed: true,
            },
        }
    }
}

/// The answers of several names. Text is printed at once, JSON when all are there.
#[derive(Debug)]
pub struct Answers<'a> {
    context: &'a Context,
    all: Vec<String>,
    worst: u8,
}

impl<'a> Answers<'a> {
    /// None yet.
    pub fn new(context: &'a Context) -> Self {
        Self { context, all: Vec::new(), worst: 0 }
    }

    /// One more; an error if the process that worked on it was killed.
    pub fn add(&mut self, name: &str, answer: guest::Result<Answer>) {
        let answer =
            answer.unwrap_or_else(|error| Answer::new(self.context, name, Err(error.into())));
        if answer.failed {
            self.worst = FAILED;
        }
        match (self.context.json, answer.failed) {
            (true, _) => self.all.push(answer.json),
            (false, true) => term::print_error(&answer.text),
            (false, false) => report(self.context, &answer.text, ""),
        }
    }

    /// All are there.
    pub fn finish(self) -> u8 {
        if self.context.json {
            term::print(&format!("{}\n", output::array(self.all)));
        }
        self.worst
    }
}

/// Whether `--all` does not mean this guest: it does not run, or is gone by now.
pub fn is_not_running(error: &guest::Error) -> bool {
    matches!(error, guest::Error::NotRunning(_) | guest::Error::Pool(pool::Error::NoGuest { .. }))
}

/// Prints the result of a verb.
pub fn report(context: &Context, text: &str, json: &str) {
    if context.json {
        term::print(&format!("{json}\n"));
    } else if !context.quiet && !text.is_empty() {
        term::print(&format!("{text}\n"));
    }
}
