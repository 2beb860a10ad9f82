use crate::config::Disk;

/// The least that a filesystem takes as a limit; 0 would be none.
const LEAST: u64 = 4096;

/// Limits; `None` for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// In bytes.
    pub size: Option<u64>,
    /// In files, directories among them.
    pub inodes: Option<u64>,
}

impl Limits {
    /// Those of a guest's settings.
    pub fn of(disk: &Disk) -> Self {
        Self { size: disk.size, inodes: disk.inodes }
    }

    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.size.is_some() || self.inodes.is_some()
    }

    /// What is left of them when `charged` bytes are used elsewhere.
    #[must_use]
    pub fn less(self, charged: u64) -> Self {
        Self { size: self.size.map(|size| size.saturating_sub(charged).max(LEAST)), ..self }
    }
}
