//! The parts of the report, one file each: a title and what measures it.

mod boot;
mod disk;
mod exec;
mod fleet;
mod growth;
mod guests;
mod many;
mod memory;
mod roots;
mod slab;
mod start;
mod trace;
mod unify_cost;

use crate::stage::Stage;

/// A report: its title, and whether it is written when no section is named.
pub struct Report {
    pub title: &'static str,
    pub by_default: bool,
}

pub static START: Report = Report { title: "What a start costs", by_default: true };
/// Its sections fill the machine, and take hours.
pub static UNIFICATION: Report =
    Report { title: "One copy of everything, and what a root costs", by_default: false };

/// A part of a report.
pub struct Section {
    pub report: &'static Report,
    pub name: &'static str,
    pub title: &'static str,
    /// Measures with so many rounds and gives Markdown, or why it could not.
    pub run: fn(&Stage, usize) -> Result<String, String>,
}

type Run = fn(&Stage, usize) -> Result<String, String>;

const fn start(name: &'static str, title: &'static str, run: Run) -> Section {
    Section { report: &START, name, title, run }
}

const fn unification(name: &'static str, title: &'static str, run: Run) -> Section {
    Section { report: &UNIFICATION, name, title, run }
}

pub static ALL: [Section; 14] = [
    start("start", "Start of a minimal guest", start::run),
    start("trace", "Where the time goes", trace::run),
    start("exec", "A command in a running guest", exec::run),
    start("boot", "A systemd guest until it is up", boot::run),
    start("memory", "Private memory per guest", memory::run),
    start("slab", "Kernel memory per guest", slab::run),
    start("many", "Many guests", many::run),
    start("disk", "Disk that a new guest costs", disk::run),
    unification("fleet", "Memory of guests with many servers", fleet::tables),
    unification("fleet-parallel", "All guests started at once", fleet::parallel),
    unification("roots", "Files in each kind of root, and in volumes", roots::run),
    unification("copy-up", "The first write to a shared file", roots::copy_up),
    unification("unify-cost", "What a unification costs", unify_cost::run),
    unification("growth", "Memory and disk by the number of guests", growth::run),
];
