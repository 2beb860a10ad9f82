//! Errors as a person or a program reads them.

use std::error::Error;
use std::fmt::Write;
use std::process::ExitCode;

use holm::{Code, Coded, Details, config, guest};

use crate::output;
use crate::term::{self, paint};

/// Exit status when holm itself failed.
pub const FAILED: u8 = 125;
/// Exit status when the command line was wrong.
pub const WRONG_USAGE: u8 = 2;

/// Why a command ends, and with what status.
#[derive(Debug)]
pub struct Failure {
    error: Box<dyn Error>,
    details: Box<Details>,
    /// The guest or base whose error it is.
    name: Option<String>,
    help: Option<String>,
    status: u8,
}

impl Failure {
    /// holm failed; `message` says at what.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            error: message.into().into(),
            details: Box::new(Details::new(code)),
            name: None,
            help: None,
            status: FAILED,
        }
    }

    /// The command line was wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { status: WRONG_USAGE, ..Self::new(Code::Usage, message) }
    }

    /// The same with another code.
    #[must_use]
    pub fn code(self, code: Code) -> Self {
        Self { details: Box::new(Details { code, ..*self.details }), ..self }
    }

    /// The same about an object.
    #[must_use]
    pub fn object(self, object: impl ToString) -> Self {
        Self { details: Box::new(self.details.object(object)), ..self }
    }

    /// The same with a reason.
    #[must_use]
    pub fn reason(self, reason: impl ToString) -> Self {
        Self { details: Box::new(self.details.reason(reason)), ..self }
    }

    /// The same with what to do about it, where the message says that already.
    #[must_use]
    pub fn remedy(self, remedy: impl ToString) -> Self {
        Self { details: Box::new(self.details.remedy(remedy)), ..self }
    }

    /// The same as the error of one of the names that were given.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The same with another exit status.
    #[must_use]
    pub fn status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    /// The error and what caused it.
    fn chain(&self) -> Vec<&(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = self.error.as_ref();
        std::iter::successors(Some(first), |e: &&(dyn Error + 'static)| (*e).source()).collect()
    }

    /// The mistake in a file or in a change, if that is what went wrong.
    fn config_error(&self) -> Option<&config::Error> {
        self.chain().into_iter().find_map(config_error)
    }

    /// The document for a program.
    pub fn json(&self) -> String {
        let Details { code, object, reason, remedy } = (*self.details).clone();
        let place = match self.config_error() {
            Some(config::Error::File { origin, line, column, .. }) => {
                Some(output::Place { file: origin.clone(), line: *line, column: *column })
            }
            _ => None,
        };
        let error = output::Error {
            code: code.as_str(),
            object: object.or_else(|| self.name.clone()),
            reason,
            remedy: remedy.or_else(|| self.help.clone()),
            message: self.error.to_string(),
            place,
        };
        output::json(&output::Failed { name: self.name.clone(), error })
    }

    /// Lines for a person.
    pub fn text(&self, colour: bool) -> String {
        let mut text = String::new();
        for (depth, error) in self.chain().into_iter().enumerate() {
            let head = if depth == 0 {
                paint("error:", term::RED, colour)
            } else {
                paint("caused by:", term::BOLD, colour)
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{head} {error}");
        }
        if let Some(excerpt) = self.config_error().and_then(config::Error::excerpt) {
            let _ = writeln!(text, "{}", paint(excerpt, term::DIM, colour));
        }
        if let Some(help) = &self.help {
            let _ = writeln!(text, "{} {help}", paint("help:", term::CYAN, colour));
        }
        text
    }
}

impl<E: Coded + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        // A change that was given on the command line.
        let usage = matches!(config_error(&error), Some(config::Error::Change { .. }));
        let status = if usage { WRONG_USAGE } else { FAILED };
        let details = Box::new(Details::of(&error));
        Self { error: Box::new(error), details, name: None, help: None, status }
    }
}

/// The mistake itself: the engine's errors speak through it, so it is not in their chain.
fn config_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a config::Error> {
    match error.downcast_ref() {
        Some(guest::Error::Config(inner)) => Some(inner),
        Some(guest::Error::RestartRefused { source, .. }) => config_error(&**source),
        _ => error.downcast_ref(),
    }
}

/// Shows a failure and gives its status.
pub fn show(failure: &Failure, json: bool, colour: bool) -> ExitCode {
    if json {
        term::print(&format!("{}\n", failure.json()));
    } else {
        term::print_error(&failure.text(colour));
    }
    ExitCode::from(failure.status)
}
