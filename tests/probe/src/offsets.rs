//! The guest's time namespace: its clocks begin with the guest, and nobody inside can change them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::report::Report;

/// Longer than any test lets its guest run, and shorter than a host that tests anything has run.
const YOUNG: f64 = 120.0;

pub fn check(report: &mut Report) {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    report.check(seconds.is_some_and(|seconds| seconds < YOUNG), "uptime", uptime.trim());
    // The kernel lets only root of the owning user namespace enter it; so does CRIU.
    let entered =
        File::open("/proc/self/ns/time").map_err(|error| error.to_string()).and_then(|own| {
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&own), Some(LinkNameSpaceType::Time))
                .map_err(|errno| errno.to_string())
        });
    report.check(entered.is_ok(), "the guest owns its time namespace", format!("{entered:?}"));
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let path = format!("/proc/{id}/timens_offsets");
        let set = OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"monotonic 1 0\n"));
        report.refused(&path, set);
    }
}
