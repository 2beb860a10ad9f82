//! Guests that stay while others are measured, and their processes as the host sees them.

use std::fs::read_to_string;

use crate::build::{Holm, SLEEPER};
use crate::stage::Stage;

/// Minimal guests that sleep; removed at the end whatever happens.
pub struct Sleepers<'a> {
    pub holm: &'a Holm,
    pub names: Vec<String>,
}

impl<'a> Sleepers<'a> {
    pub fn new(holm: &'a Holm) -> Self {
        Self { holm, names: Vec::new() }
    }

    /// A guest that runs, of each build.
    pub fn one_of_each(stage: &'a Stage) -> Result<Vec<Self>, String> {
        let start = |holm| {
            let mut sleepers = Self::new(holm);
            let names = sleepers.create_more(1, &SLEEPER)?;
            sleepers.start(&names)?;
            Ok(sleepers)
        };
        stage.holms.iter().map(start).collect()
    }

    /// Creates so many more guests with these settings, not started; their names.
    pub fn create_more(&mut self, count: usize, settings: &[&str]) -> Result<Vec<String>, String> {
        let begin = self.names.len();
        for number in begin..begin + count {
            let name = self.holm.guest(&number.to_string());
            self.names.push(name.clone());
            self.holm.create(&name, settings)?;
        }
        Ok(self.names[begin..].to_vec())
    }

    pub fn start(&self, names: &[String]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.holm.run(&[&["start"], &names[..]].concat()).map(drop)
    }
}

impl Drop for Sleepers<'_> {
    fn drop(&mut self) {
        self.holm.remove_guests(&self.names);
    }
}

/// The host's pid of a guest's init: the process in its cgroup that is pid 1 of its own pid
/// namespace.
pub fn init(name: &str) -> Result<i32, String> {
    let cgroup = format!("/{name}/guest");
    let is_it = |pid: &i32| {
        let read = |file: &str| read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let inside =
            read("cgroup").lines().any(|line| line.starts_with("0::") && line.ends_with(&cgroup));
        let first = |line: &str| {
            line.starts_with("NSpid:")
                && line.split_whitespace().count() > 2
                && line.ends_with("\t1")
        };
        inside && read("status").lines().any(first)
    };
    pids().into_iter().find(is_it).ok_or(format!("{name}: no init in its cgroup"))
}

/// All processes of the host.
pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process's parent.
pub fn parent(pid: i32) -> Option<i32> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}
