//! The parts of the report, one file each: a title and what measures it.

mod boot;
mod disk;
mod exec;
mod guests;
mod many;
mod memory;
mod slab;
mod start;
mod trace;

use crate::stage::Stage;

/// A part of the report.
pub struct Section {
    pub name: &'static str,
    pub title: &'static str,
    /// Measures with so many rounds and gives Markdown, or why it could not.
    pub run: fn(&Stage, usize) -> Result<String, String>,
}

pub const ALL: [Section; 8] = [
    Section { name: "start", title: "Start of a minimal guest", run: start::run },
    Section { name: "trace", title: "Where the time goes", run: trace::run },
    Section { name: "exec", title: "A command in a running guest", run: exec::run },
    Section { name: "boot", title: "A systemd guest until it is up", run: boot::run },
    Section { name: "memory", title: "Private memory per guest", run: memory::run },
    Section { name: "slab", title: "Kernel memory per guest", run: slab::run },
    Section { name: "many", title: "Many guests", run: many::run },
    Section { name: "disk", title: "Disk that a new guest costs", run: disk::run },
];
