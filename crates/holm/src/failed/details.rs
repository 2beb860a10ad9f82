use std::error::Error;
use std::io;

use serde::{Deserialize, Serialize};

use super::Code;

/// An error that tells a program what it is.
pub trait Coded: Error {
    /// Its code, and what belongs to it.
    fn details(&self) -> Details;
}

/// What a program is told about an error beside the sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// The kind of error.
    pub code: Code,
    /// What the error is about.
    pub object: Option<String>,
    /// Why it happened, with the kernel's words; without it the error's sources say so.
    pub reason: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "what is printed may be a value or a reference")]
impl Details {
    /// Only a code.
    pub fn new(code: Code) -> Self {
        Self { code, object: None, reason: None, remedy: None }
    }

    /// Those of an error; its sources are the reason unless it has a better one.
    pub fn of(error: &impl Coded) -> Self {
        let details = error.details();
        let first = error.source();
        let sources =
            std::iter::successors(first, |source: &&(dyn Error + 'static)| (*source).source());
        let texts: Vec<String> = sources.map(ToString::to_string).collect();
        let reason = details.reason.or((!texts.is_empty()).then(|| texts.join(": ")));
        Self { reason, ..details }
    }

    /// The same about an object.
    #[must_use]
    pub fn object(self, object: impl ToString) -> Self {
        Self { object: Some(object.to_string()), ..self }
    }

    /// The same with a reason.
    #[must_use]
    pub fn reason(self, reason: impl ToString) -> Self {
        Self { reason: Some(reason.to_string()), ..self }
    }

    /// The same with what to do.
    #[must_use]
    pub fn remedy(self, remedy: impl ToString) -> Self {
        Self { remedy: Some(remedy.to_string()), ..self }
    }
}

impl Coded for io::Error {
    fn details(&self) -> Details {
        Details::new(Code::SystemError).reason(self)
    }
}

impl Coded for rustix::io::Errno {
    fn details(&self) -> Details {
        io::Error::from(*self).details()
    }
}
