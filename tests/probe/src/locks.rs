//! Every way to undo a mount's flags, to take a mount away, or to see what lies under it.

use crate::mounts::{self, Mount};
use crate::report::Report;
use holm_sys::mount::attr;
use holm_sys::process::{self, flags};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind, mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

/// Option in mountinfo, attribute of `mount_setattr(2)`, flag of `mount(2)`.
const FLAGS: [(&str, u64, MountFlags); 4] = [
    ("ro", attr::RDONLY, MountFlags::RDONLY),
    ("nodev", attr::NODEV, MountFlags::NODEV),
    ("nosuid", attr::NOSUID, MountFlags::NOSUID),
    ("noexec", attr::NOEXEC, MountFlags::NOEXEC),
];

/// Where attempts put things: a directory that a guest root can always make.
const PLAY: &str = "/tmp/holm-probe";

pub fn everywhere(report: &mut Report, skip: &[&str]) {
    for place in ["here", "mount", "user"] {
        let run = Command::new("/proc/self/exe").args(["locks-in", place]).args(skip).status();
        report.add(&format!("locks, {place}"), run.is_ok_and(|status| status.success()));
    }
}

/// Tries in `place`: the namespaces as they are, a new mount namespace, or a new user namespace.
pub fn one_place(report: &mut Report, place: &str, skip: &[&str]) {
    println!("-- {place}");
    let entered = match place {
        "mount" => process::unshare(flags::NEWNS),
        "user" => process::unshare(flags::NEWUSER | flags::NEWNS).and_then(|()| map_root()),
        _ => Ok(()),
    };
    report.works("enter the namespaces", entered);
    if place != "here" {
        let private =
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC);
        report.works("make all private", private);
    }
    for directory in [PLAY, "/tmp/holm-probe/b", "/tmp/holm-probe/c", "/tmp/holm-probe/d"] {
        let _ = std::fs::create_dir_all(directory);
    }
    let _ = std::fs::write("/tmp/holm-probe/file", "");
    // In a new user namespace what the guest itself mounted is locked too.
    let skip = if place == "user" { &[] } else { skip };
    let all = mounts::all();
    let skipped = |point: &Path| skip.iter().any(|above| point.starts_with(above));
    let mine: Vec<&Mount> = all.iter().filter(|m| !skipped(Path::new(&m.point))).collect();
    report.check(mine.len() >= 8, "mounts to try", mine.len());
    for mount in &mine {
        flags_of(report, mount);
    }
    copies(report, &mine);
    for mount in &mine {
        reveal(report, mount, &mine);
    }
    for mount in mine.iter().rev() {
        take_away(report, mount);
    }
    writes(report, &mine);
}

fn map_root() -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", "0 0 1")?;
    std::fs::write("/proc/self/gid_map", "0 0 1")
}

/// Clears each flag that is set, in every way there is.
fn flags_of(report: &mut Report, at: &Mount) {
    let set = |option: &str| at.options.iter().any(|have| have == option);
    let kept =
        FLAGS.iter().filter(|(option, ..)| set(option)).fold(MountFlags::BIND, |all, f| all | f.2);
    for (option, attribute, flag) in FLAGS.into_iter().filter(|(option, ..)| set(option)) {
        let what = |how: &str| format!("{}: clear {option} by {how}", at.point);
        let remounted = mount_remount(at.point.as_str(), kept & !flag, "");
        report.refused(&what("remount"), remounted);
        let tree = open_tree(CWD, at.point.as_str(), OpenTreeFlags::OPEN_TREE_CLOEXEC);
        let cleared = tree
            .map_err(std::io::Error::from)
            .and_then(|tree| holm_sys::mount::set_attributes(tree.as_fd(), 0, attribute));
        report.refused(&what("mount_setattr"), cleared);
        for recursive in [OpenTreeFlags::empty(), OpenTreeFlags::AT_RECURSIVE] {
            let how = if recursive.is_empty() { "a clone" } else { "a recursive clone" };
            let clone =
                OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | recursive;
            let cleared = open_tree(CWD, at.point.as_str(), clone)
                .map_err(std::io::Error::from)
                .and_then(|tree| holm_sys::mount::set_attributes(tree.as_fd(), 0, attribute));
            report.refused(&what(how), cleared);
        }
        if Path::new(&at.point).is_dir()
            && mount_bind(at.point.as_str(), "/tmp/holm-probe/b").is_ok()
        {
            let remounted = mount_remount("/tmp/holm-probe/b", kept & !flag, "");
            report.refused(&what("remount of a bind"), remounted);
            let _ = unmount("/tmp/holm-probe/b", UnmountFlags::DETACH);
        }
    }
}

/// A recursive copy of the whole tree has the same locks.
fn copies(report: &mut Report, mounts: &[&Mount]) {
    const COPY: &str = "/tmp/holm-probe/c";
    report.works("rbind / elsewhere", mount_bind_recursive("/", COPY));
    for at in mounts.iter().filter(|at| at.point != "/") {
        let inside = format!("{COPY}{}", at.point);
        report.refused(
            &format!("{}: unmount in a copy", at.point),
            unmount(inside.as_str(), UnmountFlags::DETACH),
        );
        if at.options.iter().any(|option| option == "ro") {
            let remounted = mount_remount(inside.as_str(), MountFlags::BIND, "");
            report.refused(&format!("{}: remount rw in a copy", at.point), remounted);
        }
    }
    report.works("unmount the copy", unmount(COPY, UnmountFlags::DETACH));
}

/// A copy without what is mounted below would show what a mask covers.
fn reveal(report: &mut Report, at: &Mount, mounts: &[&Mount]) {
    if !mounts.iter().any(|below| below.parent == at.id && below.id != at.id) {
        return;
    }
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    report.refused(
        &format!("{}: clone without its children", at.point),
        open_tree(CWD, at.point.as_str(), clone),
    );
    let bound = mount_bind(at.point.as_str(), "/tmp/holm-probe/b");
    if bound.is_ok() {
        let _ = unmount("/tmp/holm-probe/b", UnmountFlags::DETACH);
    }
    report.refused(&format!("{}: bind without its children", at.point), bound);
}

/// Unmounts, moves.
fn take_away(report: &mut Report, at: &Mount) {
    let to =
        if Path::new(&at.point).is_dir() { "/tmp/holm-probe/d" } else { "/tmp/holm-probe/file" };
    let moved = move_mount(CWD, at.point.as_str(), CWD, to, MoveMountFlags::empty());
    report.refused(&format!("{}: move", at.point), moved);
    let moved = mount(at.point.as_str(), to, "", MountFlags::from_bits_retain(0x2000), None); // MS_MOVE
    report.refused(&format!("{}: move by mount", at.point), moved);
    for (how, flags) in
        [("", UnmountFlags::empty()), (" -l", UnmountFlags::DETACH), (" -f", UnmountFlags::FORCE)]
    {
        report.refused(&format!("{}: unmount{how}", at.point), unmount(at.point.as_str(), flags));
    }
}

/// Writing where a read-only mount is.
fn writes(report: &mut Report, mounts: &[&Mount]) {
    for at in mounts.iter().filter(|at| at.options.iter().any(|option| option == "ro")) {
        let file = format!("{}/holm-probe-was-here", at.point);
        if Path::new(&at.point).is_dir() {
            report.refused(&format!("{}: make a file", at.point), std::fs::write(file, ""));
        }
    }
}
