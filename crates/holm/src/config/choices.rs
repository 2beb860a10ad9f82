//! The names of the values of keys that have a few.

use super::types::{Arch, DiskKind, Init, NetMode, Restart};

pub const INITS: [(&str, Init); 2] = [("system", Init::System), ("minimal", Init::Minimal)];
pub const ARCHS: [(&str, Arch); 2] = [("native", Arch::Native), ("i686", Arch::I686)];
pub const RESTARTS: [(&str, Restart); 3] =
    [("no", Restart::No), ("on-failure", Restart::OnFailure), ("always", Restart::Always)];
pub const DISK_KINDS: [(&str, DiskKind); 4] = [
    ("overlay", DiskKind::Overlay),
    ("plain", DiskKind::Plain),
    ("memory", DiskKind::Memory),
    ("read-only", DiskKind::ReadOnly),
];
pub const MODES: [(&str, NetMode); 4] = [
    ("private", NetMode::Private),
    ("native", NetMode::Native),
    ("none", NetMode::None),
    ("host", NetMode::Host),
];
