//! The parts of the report, one file each: a title and what measures it.

mod boot;
mod disk;
mod exec;
mod fleet;
mod growth;
mod guests;
mod import;
mod many;
mod memory;
mod network;
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
    /// How all its figures were taken.
    pub introduction: &'static str,
}

pub static START: Report = Report {
    title: "What a start costs",
    by_default: true,
    introduction: "\
Times are those of whole processes, from before the fork until they were waited for. The rows of a
table took turns, in another order each round; three rounds were not counted. A ratio is the median
over pairs from the same round: compare ratios, not milliseconds of different tables.\n\n",
};
/// Its sections fill the machine, and take hours.
pub static UNIFICATION: Report =
    Report { title: "One copy of everything", by_default: false, introduction: "" };
pub static ROOTS: Report = Report {
    title: "What files cost",
    by_default: false,
    introduction: "\
The columns of a table took turns, in another order each round; one round was not counted. A ratio is
the median over pairs from the same round.\n\n",
};

pub static NETWORK: Report = Report {
    title: "What networks cost",
    by_default: false,
    introduction: "\
The rows of a table took turns, in another order each round; one round was not counted. A ratio is
the median over pairs from the same round.\n\n",
};

pub static RATE: Report =
    Report { title: "How exactly rates are kept", by_default: false, introduction: "" };

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

const fn roots(name: &'static str, title: &'static str, run: Run) -> Section {
    Section { report: &ROOTS, name, title, run }
}

const fn networks(name: &'static str, title: &'static str, run: Run) -> Section {
    Section { report: &NETWORK, name, title, run }
}

const RATES: Section = Section {
    report: &RATE,
    name: "rates",
    title: "Reservations and shares of an uplink",
    run: network::rates::run,
};

pub static ALL: [Section; 23] = [
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
    unification("fleet-disk", "Disk of guests with many servers", fleet::disk),
    roots("roots", "Files in each kind of root, and in volumes", roots::run),
    roots("processes", "Processes and memory in a guest", roots::processes),
    roots("copy-up", "The first write to a shared file", roots::copy_up),
    unification("import", "What an import costs", import::run),
    unification("unify-cost", "What a unification costs", unify_cost::run),
    networks("network", "Loads by one client", network::run),
    networks("hooks", "What the programs of native guests take", network::hooks::run),
    networks("modes", "What a start costs in each mode", network::modes::run),
    networks("datagrams", "Datagrams of many guests", network::datagrams::run),
    networks("apache", "Apache in many guests", network::apache::run),
    RATES,
    unification("growth", "Memory and disk by the number of guests", growth::run),
];
