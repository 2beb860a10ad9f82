//! What the figures were taken on.

use std::fs::read_to_string;
use std::process::Command;

use crate::build::{Build, Holm};
use crate::rounds::cell;

/// A table of the machine and the versions of everything that is measured.
pub fn describe(holms: &[Holm]) -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        meminfo.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let cgroups = match holm::cgroup::Layout::probe().and_then(|layout| layout.is_pure_v2()) {
        Ok(true) => "v2".to_owned(),
        Ok(false) => "hybrid (controllers on v1)".to_owned(),
        Err(e) => e.to_string(),
    };
    let version = |build: Build| {
        let holm = holms.iter().find(|holm| holm.build == build);
        holm.map(|holm| first_line(&holm.program, &["--version"]))
    };
    let rows = [
        ("date", Some(first_line("date", &["-u", "+%Y-%m-%d %H:%M UTC"]))),
        ("kernel", Some(kernel.trim().to_owned())),
        ("CPUs", Some(format!("{cpus}, {}", model.trim_start_matches([' ', '\t', ':'])))),
        (
            "memory",
            Some(format!(
                "{:.1} GiB",
                f64::from(u32::try_from(memory / 1024).unwrap_or(0)) / 1024.0
            )),
        ),
        ("cgroups", Some(cgroups)),
        ("load average at the start", Some(load)),
        ("holm", version(Build::Now)),
        ("holm, before", version(Build::Before)),
        ("bubblewrap", Some(first_line("bwrap", &["--version"]))),
        ("lxc", Some(first_line("lxc-execute", &["--version"]))),
        ("runc", Some(first_line("runc", &["--version"]))),
        ("systemd-nspawn", Some(first_line("systemd-nspawn", &["--version"]))),
        ("nsenter", Some(first_line("nsenter", &["--version"]))),
    ];
    let rows = rows.map(|(what, value)| {
        value.map_or(String::new(), |value| format!("| {what} | {} |\n", cell(&value)))
    });
    format!("| | |\n|---|---|\n{}", rows.concat())
}

fn first_line(program: &str, args: &[&str]) -> String {
    match Command::new(program).args(args).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().next().unwrap_or_default().to_owned()
        }
        Err(_) => "not installed".to_owned(),
    }
}
