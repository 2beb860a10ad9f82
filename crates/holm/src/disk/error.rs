use crate::{Code, Coded, Details, Failed};

/// An error of a private layer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guest was unified on another base.
    #[error(
        "the guest's private layer was unified on base {made_for} as it was then, and cannot lie on \
         {base}: set `base` back, or create the guest anew and copy its files"
    )]
    OtherBase {
        /// The base that it was unified on.
        made_for: String,
        /// The base that it would start on.
        base: String,
    },
    /// The kernel refused something.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::OtherBase { made_for, base } => Details::new(Code::LayerOfOtherBase)
                .object(base)
                .reason(format!("the private layer was unified on base {made_for}"))
                .remedy("set `base` back, or create the guest anew and copy its files"),
            Self::Failed(failed) => failed.details(),
        }
    }
}
