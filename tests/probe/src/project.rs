//! Project ids, by which a guest's disk is limited.

use std::fs::File;
use std::os::fd::AsFd;

use holm_sys::project;

use crate::report::Report;

/// None of these files can be given another project id, nor a directory stop passing on its own.
pub fn check(report: &mut Report, paths: &[&str]) {
    for path in paths {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                report.check(false, path, error);
                continue;
            }
        };
        let own = project::get(file.as_fd()).ok();
        for (id, inherit) in [(0, false), (0, true), (7, true)] {
            if own == Some((id, inherit)) {
                continue;
            }
            let what = format!("project id {id} for {path}");
            report.refused(&what, project::set(file.as_fd(), id, inherit));
        }
        let lifted = project::set_limits(file.as_fd(), 0, 0, 0);
        report.refused(&format!("limits of the filesystem of {path}"), lifted);
    }
}
