//! The columns of `holm ls`: what a guest has there, as text and to sort by.

use holm::cgroup::Figures;
use holm::guest::{Status, Summary};
use holm::record::shown_ports;

use crate::output::guest::{arch, mode};
use crate::output::health::{Monitor, Readiness};
use crate::table::{self, Cell};
use crate::term;

/// A column.
pub struct Column {
    /// Its name in options, and in capitals its head.
    pub name: &'static str,
    /// What is in it, for the help.
    pub help: &'static str,
    /// What of the guest's usage must be read for it.
    pub figures: Figures,
    value: fn(&Summary) -> Value,
}

/// What a guest has in a column. Numbers are sorted by size, and what is missing comes last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Text(String),
    Number(u64),
    Bytes(u64),
    Seconds(u64),
    /// Microseconds of CPU time.
    Cpu(u64),
    Missing,
}

/// All columns, in the order of the help.
pub const COLUMNS: &[Column] = &[
    column("name", "its name", |g| text(&g.name)),
    column("state", "what it is doing, with what needs attention", |g| {
        text(state_text(g.status).0)
    }),
    column("base", "the base it stands on", |g| {
        some(Some(&g.base).filter(|b| !b.is_empty()), text)
    }),
    column("address", "its addresses", address),
    column("ports", "its published ports", ports),
    column("network", "the mode of its network", |g| {
        some(g.record.as_ref(), |record| text(mode(record.network.mode)))
    }),
    column("memory", "memory in use", |g| some(usage(g, |u| u.memory), Value::Bytes)),
    more("memory-limit", "the limit on it", |g| some(usage(g, |u| u.memory_limit), Value::Bytes)),
    more("memory-peak", "the most in this run", |g| {
        some(usage(g, |u| u.memory_peak), Value::Bytes)
    }),
    column("pids", "processes and threads", |g| some(usage(g, |u| u.pids), Value::Number)),
    more("pids-limit", "the limit on them", |g| some(usage(g, |u| u.pids_limit), Value::Number)),
    more("cpu", "CPU time of this run", |g| some(usage(g, |u| Some(u.cpu_usec)), Value::Cpu)),
    network("sent", "bytes that it has sent in this run", |g| {
        some(g.traffic.as_ref(), |traffic| Value::Bytes(traffic.sent.bytes))
    }),
    network("received", "bytes that it has received in this run", |g| {
        some(g.traffic.as_ref(), |traffic| Value::Bytes(traffic.received.bytes))
    }),
    column("up", "how long this run has gone on", |g| {
        some(g.record.as_ref(), |record| Value::Seconds(record.age()))
    }),
    column("arch", "the machine that its programs see", |g| {
        some(g.record.as_ref(), |record| text(arch(record.arch)))
    }),
    column("init-pid", "its init's process id on the host", |g| {
        let pid = g.record.as_ref().and_then(|record| u64::try_from(record.init_pid).ok());
        some(pid.filter(|pid| *pid != 0), Value::Number)
    }),
    column("monitor", "its monitor: present, replaced or missing", |g| {
        some(Monitor::of(g), |monitor| text(monitor.as_str()))
    }),
    column("readiness", "ready, waiting, unsupported or unknown", |g| {
        some(Readiness::of(g), |readiness| text(readiness.as_str()))
    }),
];

/// The columns without `--columns`.
pub const USUAL: [&str; 7] = ["name", "state", "base", "address", "memory", "pids", "up"];

const fn column(name: &'static str, help: &'static str, value: fn(&Summary) -> Value) -> Column {
    Column { name, help, figures: Figures::Current, value }
}

/// A column of figures that are not read for the others.
const fn more(name: &'static str, help: &'static str, value: fn(&Summary) -> Value) -> Column {
    Column { figures: Figures::All, ..column(name, help, value) }
}

/// A column of what the network counts.
const fn network(name: &'static str, help: &'static str, value: fn(&Summary) -> Value) -> Column {
    Column { figures: Figures::Traffic, ..column(name, help, value) }
}

impl Column {
    /// The column of this name.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        COLUMNS.iter().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            format!("there is no column {name:?}; there are: {}", names.join(", "))
        })
    }

    /// What a guest has in it.
    pub fn value(&self, guest: &Summary) -> Value {
        (self.value)(guest)
    }

    /// The same in a table.
    pub fn cell(&self, guest: &Summary) -> Cell {
        if self.name == "state" { state(guest) } else { Cell::from(self.value(guest).shown()) }
    }
}

impl Value {
    /// As a filter sees it: numbers in digits.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(n) | Self::Bytes(n) | Self::Seconds(n) | Self::Cpu(n) => n.to_string(),
            Self::Missing => String::new(),
        }
    }

    /// As a person reads it.
    fn shown(&self) -> String {
        match self {
            Self::Bytes(bytes) => term::size(*bytes),
            Self::Seconds(seconds) => term::span(*seconds),
            Self::Cpu(usec) => term::cpu_time(*usec),
            Self::Missing => "-".to_owned(),
            Self::Text(_) | Self::Number(_) => self.plain(),
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "what is shown may be a value or a reference")]
fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn some<T>(value: Option<T>, then: impl FnOnce(T) -> Value) -> Value {
    value.map_or(Value::Missing, then)
}

fn usage<T>(guest: &Summary, of: impl FnOnce(&holm::cgroup::Usage) -> Option<T>) -> Option<T> {
    guest.usage.as_ref().and_then(of)
}

fn address(guest: &Summary) -> Value {
    let all =
        guest.record.as_ref().map(|record| record.network.own_addresses()).unwrap_or_default();
    // The rest is in `status`: it would be the widest column.
    all.first().map_or(Value::Missing, text)
}

fn ports(guest: &Summary) -> Value {
    let ports = guest.record.iter().flat_map(|record| &record.network.publish);
    let ports = shown_ports(&ports.copied().collect::<Vec<_>>());
    if ports.is_empty() { Value::Missing } else { text(ports.join(", ")) }
}

/// The state in its colour, with what needs attention.
fn state(guest: &Summary) -> Cell {
    let (state, colour) = state_text(guest.status);
    let mut text = state.to_owned();
    let remarks = [
        (guest.problem.is_some() && guest.status != Status::Unknown, "settings broken"),
        (guest.monitor_missing, "no monitor"),
        (guest.oom_kills > 0, "out of memory"),
    ];
    for (_, remark) in remarks.into_iter().filter(|r| r.0) {
        text = format!("{text}, {remark}");
    }
    table::coloured(text, colour)
}

/// The name of a state, and its colour.
pub fn state_text(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Stopped => ("stopped", term::DIM),
        Status::Running => ("running", term::GREEN),
        Status::Ready => ("ready", term::GREEN),
        Status::Frozen => ("frozen", term::CYAN),
        Status::Stopping => ("stopping", term::YELLOW),
        Status::Restarting => ("restarting", term::YELLOW),
        Status::Unknown => ("unknown", term::RED),
    }
}
