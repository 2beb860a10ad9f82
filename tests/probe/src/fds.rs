//! Descriptors, working directories and roots: none may lead out of the guest (CVE-2024-21626 and
//! its like).

use crate::mounts;
use crate::report::Report;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

pub fn check(report: &mut Report) {
    let known: BTreeSet<u64> = mounts::all().iter().map(|mount| mount.id).collect();
    for entry in fs::read_dir("/proc/self/fd").expect("/proc/self/fd").flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let what = format!("descriptor {name} -> {}", target.display());
        if !target.is_absolute() {
            report.check(true, &what, "no file");
            continue;
        }
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        let inside = mount.is_some_and(|mount: u64| known.contains(&mount));
        // A user may redirect a plain file of the host into a guest's command; a directory, a
        // terminal or a disk of the host would be a way out.
        let plain = fs::metadata(entry.path()).is_ok_and(|meta| {
            meta.is_file()
                || meta.file_type().is_char_device() && meta.rdev() == rustix::fs::makedev(1, 3)
        });
        report.check(
            inside || plain,
            &what,
            if inside { "the guest's" } else { "of another mount namespace" },
        );
    }
    let mine = fs::metadata("/").map(|meta| (meta.dev(), meta.ino())).ok();
    let up = fs::metadata("/..").map(|meta| (meta.dev(), meta.ino())).ok();
    report.check(mine.is_some() && mine == up, "/.. is /", format!("{up:?}"));
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        for link in ["cwd", "root"] {
            let Ok(target) = fs::read_link(entry.path().join(link)) else { continue };
            let shown = target.to_string_lossy();
            let inside = shown.starts_with('/') && !shown.starts_with("/..");
            report.check(inside, &format!("{link} of process {pid}"), shown);
        }
    }
}
