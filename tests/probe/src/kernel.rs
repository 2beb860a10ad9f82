//! The host's kernel: calls, clock, log, ids, network.

use crate::report::Report;
use holm::security::seccomp::refused;
use holm_sys::process::{self, flags};
use holm_sys::try_syscall;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read;

/// Makes a system call with these first arguments.
type Make = fn(u32, &[u32]) -> std::io::Result<()>;

pub fn seccomp(report: &mut Report, compat: bool) {
    for rule in refused() {
        let (number, make): (_, Make) = if compat {
            (rule.i386, try_syscall::compat)
        } else {
            (rule.x86_64, try_syscall::native)
        };
        let Some(number) = number else { continue };
        let errno = i32::from(rule.errno);
        for arguments in &rule.arguments {
            let result = make(number, arguments);
            let good = result.as_ref().is_err_and(|error| error.raw_os_error() == Some(errno));
            let tried = format!("{arguments:?}: {result:?}, errno {errno} expected");
            report.check(good, rule.call, tried);
        }
    }
    report.works(
        "a new user namespace, as nested containers need it",
        process::unshare(flags::NEWUSER),
    );
}

pub fn clock(report: &mut Report) {
    use rustix::time::{ClockId, clock_gettime, clock_settime};
    let now = clock_gettime(ClockId::Realtime);
    report.refused("clock_settime", clock_settime(ClockId::Realtime, now));
    report.refused("settimeofday", try_syscall::native(164, &[]));
    for rtc in ["/dev/rtc", "/dev/rtc0"] {
        report.refused(rtc, File::open(rtc));
    }
    let rtc = "/sys/class/rtc/rtc0/wakealarm";
    report.refused(rtc, OpenOptions::new().write(true).open(rtc));
}

pub fn dmesg(report: &mut Report) {
    report.refused("syslog", try_syscall::native(103, &[3]));
    report.refused("/dev/kmsg", File::open("/dev/kmsg"));
    report.refused("/proc/kmsg", File::open("/proc/kmsg"));
    report.refused("/proc/kcore", File::open("/proc/kcore"));
    for file in ["/proc/kallsyms", "/proc/cmdline"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        report.check(text.is_empty(), file, format!("{} bytes", text.len()));
    }
    for directory in ["/sys/firmware", "/sys/kernel/boot_params"] {
        let count = fs::read_dir(directory).map_or(0, Iterator::count);
        report.check(count == 0, directory, format!("{count} entries"));
    }
}

pub fn ids(report: &mut Report) {
    for file in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<Vec<u32>> = text
            .lines()
            .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
            .collect();
        let good = matches!(lines.as_slice(), [one] if matches!(one.as_slice(),
            [0, base, count] if *base >= 1 << 20 && base % 65536 == 0 && *count >= 65536));
        report.check(good, file, text.trim());
    }
    let groups = fs::read_to_string("/proc/self/setgroups").unwrap_or_default();
    report.check(groups.trim() == "allow", "setgroups", groups.trim());
    let init = fs::metadata("/proc/1").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
    report.check(init.as_ref().is_ok_and(|uid| *uid == 0), "owner of /proc/1", format!("{init:?}"));
}

pub fn net(report: &mut Report, names: &[&str]) {
    let have: BTreeSet<String> = fs::read_to_string("/proc/net/dev")
        .unwrap_or_default()
        .lines()
        .skip(2)
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    let want: BTreeSet<String> = names.iter().map(|&name| name.to_owned()).collect();
    report.check(have == want, "interfaces", format!("{have:?}, expected {want:?}"));
    let mut unix = String::new();
    let read = File::open("/proc/net/unix").and_then(|mut file| file.read_to_string(&mut unix));
    let abstracts: Vec<&str> =
        unix.lines().filter_map(|line| line.split_once(" @")).map(|(_, n)| n).collect();
    // A guest's own systemd and dbus have such names too (also 5 hexadecimal digits of glibc's
    // autobind).
    let own = |name: &str| {
        ["/systemd/", "/dbus/", "/bus/"].iter().any(|part| name.contains(part)) || name.len() == 5
    };
    let foreign: Vec<&&str> = abstracts.iter().filter(|name| !own(name)).collect();
    report.check(read.is_ok() && foreign.is_empty(), "abstract sockets", format!("{foreign:?}"));
}
