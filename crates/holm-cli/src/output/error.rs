use serde::Serialize;

/// What is printed instead of a result that there is not.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed {
    /// The guest or base that was given, where the error is that of one name; else null.
    pub name: Option<String>,
    /// The error.
    pub error: Error,
}

/// Why a command failed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Error {
    /// The kind of error: one of the codes below.
    pub code: &'static str,
    /// What the error is about: a guest, a file, an option as it was typed.
    pub object: Option<String>,
    /// Why it happened, with the kernel's words; null where the code says it all.
    pub reason: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The sentence for people. It may change.
    pub message: String,
    /// Where in a file the mistake is.
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}
