use crate::{Coded, Details, Failed};

/// What can go wrong with these records.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] pub Failed);

impl Coded for Error {
    fn details(&self) -> Details {
        self.0.details()
    }
}
