use std::path::PathBuf;

/// A file, link or directory that Holm injects into a guest's root, owned by guest root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Absolute path in the guest.
    pub path: PathBuf,
    /// What is there.
    pub content: Content,
    /// Leave it alone if it is there already.
    pub keep: bool,
}

/// What an injected file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text, and the file's mode.
    Text(String, u32),
    /// The target of a symbolic link.
    Link(String),
    /// A directory of this mode.
    Directory(u32),
    /// Lines in a text file whose other lines are the guest's, and the file's mode. They replace
    /// those of the last start, and no lines remove them.
    ManagedBlock(String, u32),
}

impl File {
    pub(super) fn new(path: &str, content: Content) -> Self {
        let keep = matches!(content, Content::Directory(_));
        Self { path: path.into(), content, keep }
    }

    pub(super) fn text(path: &str, text: impl Into<String>) -> Self {
        Self::new(path, Content::Text(text.into(), 0o644))
    }

    pub(super) fn link(path: &str, target: &str) -> Self {
        Self::new(path, Content::Link(target.to_owned()))
    }
}
