//! A test: a name, a function that gets a sandbox, and what it needs.

use crate::durations;
use crate::options::{Lane, Options};
use crate::sandbox::Sandbox;
use crate::{fixture, sandbox};
use libtest_mimic::{Completion, Failed, Trial};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub name: &'static str,
    pub run: fn(&mut Sandbox),
    /// Shared bases (see `fixture`) that the sandbox's root has.
    pub bases: &'static [&'static str],
    /// The lane it cannot run in, and why.
    pub not_in: Option<(Lane, &'static str)>,
    /// The lanes where it runs only if asked for, and why.
    pub slow_in: Option<(&'static [Lane], &'static str)>,
    /// It runs when no other test does: it takes what all programs of the machine share.
    pub alone: bool,
}

/// Names the function `f` of a topic as a test: `test!(f)`.
macro_rules! test {
    ($function:ident) => {
        $crate::test::Test {
            name: concat!(module_path!(), "::", stringify!($function)),
            run: $function,
            bases: &[],
            not_in: None,
            slow_in: None,
            alone: false,
        }
    };
}
pub(crate) use test;

impl Test {
    pub const fn bases(mut self, bases: &'static [&'static str]) -> Self {
        self.bases = bases;
        self
    }

    pub const fn not_in(mut self, lane: Lane, why: &'static str) -> Self {
        self.not_in = Some((lane, why));
        self
    }

    pub const fn slow_in(mut self, lanes: &'static [Lane], why: &'static str) -> Self {
        self.slow_in = Some((lanes, why));
        self
    }

    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    pub fn into_trial(self, options: &Arc<Options>) -> Trial {
        let options = Arc::clone(options);
        let name = self.name.trim_start_matches("holm_tests::topics::");
        Trial::ignorable_test(name, move || {
            durations::measure(name, || self.run_in_sandbox(&options))
        })
    }

    fn run_in_sandbox(self, options: &Arc<Options>) -> Result<Completion, Failed> {
        if let Some(reason) = self.reason_to_skip(options) {
            return Ok(Completion::ignored_with(reason));
        }
        for base in self.bases {
            fixture::base(options, base)?;
        }
        let mut sandbox = Sandbox::new(options, self.bases)?;
        let ended = catch_unwind(AssertUnwindSafe(|| (self.run)(&mut sandbox)));
        let left = sandbox.clean_up(ended.is_err());
        match (ended, left) {
            (Err(panic), _) if panic.is::<sandbox::Skip>() => {
                let reason = panic.downcast::<sandbox::Skip>().map_or(String::new(), |skip| skip.0);
                Ok(Completion::ignored_with(reason))
            }
            (Err(panic), _) => Err(message(panic.as_ref()).into()),
            (Ok(()), Err(left)) => Err(left.into()),
            (Ok(()), Ok(())) => Ok(Completion::Completed),
        }
    }

    fn reason_to_skip(&self, options: &Options) -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        if options.leave_out.iter().any(|part| self.name.contains(part)) {
            return Some("another lane shows it (--leave-out)".to_owned());
        }
        self.left_out(options.lane, options.slow)
    }

    /// Why it does not run in `lane`; with `slow` the slow tests run too.
    pub fn left_out(&self, lane: Lane, slow: bool) -> Option<String> {
        match (self.not_in, self.slow_in) {
            (Some((other, why)), _) if other == lane => Some(why.to_owned()),
            (_, Some((lanes, why))) if lanes.contains(&lane) && !slow => {
                Some(format!("{why} (--slow runs it)"))
            }
            _ => None,
        }
    }
}

thread_local! {
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics quiet: the harness prints their messages and places when all tests are done.
pub fn remember_where_panics_are() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}: ", at.file(), at.line()));
        PANICKED_AT.set(place.unwrap_or_default());
    }));
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked");
    PANICKED_AT.take() + text
}
