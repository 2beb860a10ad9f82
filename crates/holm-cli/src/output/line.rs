use serde::Serialize;

/// A line of a guest's console.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line<'a> {
    /// The guest.
    pub name: &'a str,
    /// The line without its end, with control characters; bytes that are no UTF-8 are U+FFFD. The
    /// log has no times.
    pub text: &'a str,
}
