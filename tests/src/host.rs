//! What Holm can leave behind on a host: cgroups, mounts, links, nft tables, loop devices,
//! processes, files.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything on the host that looks like Holm's, one line each: the kind, then the name.
#[derive(Debug, Clone, Default)]
pub struct Snapshot(BTreeSet<String>);

/// The lock file of an instance's ruleset or access rules, or its directory: they are kept once
/// they exist.
fn is_lock(item: &str) -> bool {
    let Some(path) = item.strip_prefix("file /run/holm/") else { return false };
    let locked = path.strip_suffix("/net.lock").or(path.strip_suffix("/access.lock"));
    locked.unwrap_or(path).parse::<u8>().is_ok()
}

impl Snapshot {
    pub fn take() -> Self {
        let mut items = BTreeSet::new();
        items.extend(cgroups().iter().map(|path| format!("cgroup {}", path.display())));
        items.extend(mounts().into_iter().map(|line| format!("mount {line}")));
        items.extend(links().into_iter().map(|name| format!("link {name}")));
        items.extend(loopback_addresses().into_iter().map(|text| format!("address {text}")));
        items.extend(nft_tables().into_iter().map(|name| format!("nft {name}")));
        items.extend(loops().into_iter().map(|file| format!("loop {file}")));
        items.extend(processes().into_iter().map(|process| format!("process {process}")));
        for top in ["/run/holm", "/dev/shm", "/tmp", "/var/lib/holm"] {
            files(Path::new(top), 3, &mut items);
        }
        // Made by the first Holm root of a machine, or by the first native guest; belong to none.
        items.remove("file /run/holm/instances");
        items.remove("file /run/holm/native.lock");
        items.remove("file /run/holm/shaping.lock");
        items.retain(|item| !is_lock(item));
        Self(items)
    }

    /// What is there now and was not in `before`, without what belongs to Holm roots outside
    /// `scratch` (other people's) or to roots that are still there (the shared bases').
    pub fn since(&self, before: &Self, scratch: &Path) -> Vec<String> {
        let others =
            instances().into_iter().filter(|(_, root)| !root.starts_with(scratch) || root.exists());
        let others: Vec<u32> = others.map(|(number, _)| number).collect();
        let new = self.0.difference(&before.0);
        new.filter(|item| !others.iter().any(|&number| is_of(item, number))).cloned().collect()
    }

    /// What belongs to the Holm root `root`, which has instance number `instance`.
    pub fn of(&self, root: &Path, instance: Option<u32>) -> Vec<String> {
        let root = root.to_string_lossy();
        let ours = |item: &&String| {
            item.contains(&*root) || instance.is_some_and(|number| is_of(item, number))
        };
        self.0.iter().filter(ours).cloned().collect()
    }
}

/// Whether `item` is something that a root keeps after its first guest: its empty cgroups,
/// and an nftables table without elements.
pub fn is_permanent(item: &str, instance: u32) -> bool {
    let group = format!("holm-{instance}");
    match item.split_once(' ') {
        Some(("cgroup", path)) => {
            path.ends_with(&format!("/{group}")) || path.ends_with(&format!("/{group}/.monitor"))
        }
        Some(("nft", _)) => item.ends_with(&group) && !names_a_guest(&group),
        _ => false,
    }
}

/// Whether a set or map of the nftables table `inet NAME` has an element. What packets have counted
/// is there until the table goes, and so is what tells requests: the next guest's with the id.
fn names_a_guest(table: &str) -> bool {
    let output = Command::new("nft").args(["list", "table", "inet", table]).output();
    output.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout);
        let stays = |set: &str| set.contains("counter packets") || set.contains("map requests {");
        text.split("\n\n").any(|set| set.contains("elements =") && !stays(set))
    })
}

/// Whether `item` has a name that instance `number` gives.
fn is_of(item: &str, number: u32) -> bool {
    let group = format!("holm-{number}");
    let links = ["h", "lan"].map(|kind| format!("{kind}{number}-"));
    let is_link = |word: &str| links.iter().any(|link| word.starts_with(link));
    let (run, instance) = (format!("/run/holm/{number}"), format!("/run/holm/instances/{number}"));
    let address = format!("address fd00686f6c6d{number:04x}");
    item.starts_with(&address)
        || item.split([' ', '/', '(', ')']).any(|word| word == group || is_link(word))
        || item
            .split(' ')
            .any(|word| word == run || word == instance || word.starts_with(&format!("{run}/")))
}

/// The IPv6 addresses of `lo`, in hexadecimal.
fn loopback_addresses() -> Vec<String> {
    let text = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let of_lo = text.lines().filter(|line| line.ends_with(" lo"));
    of_lo.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// Instance numbers in use, with the root that holds each.
pub fn instances() -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir("/run/holm/instances") else { return Vec::new() };
    let link = |entry: fs::DirEntry| {
        Some((entry.file_name().to_str()?.parse().ok()?, fs::read_link(entry.path()).ok()?))
    };
    entries.flatten().filter_map(link).collect()
}

/// The directories where cgroup hierarchies are mounted.
pub fn cgroup_mounts() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_cgroup =
        |line: &&str| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("cgroup"));
    text.lines()
        .filter(is_cgroup)
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .collect()
}

/// Every cgroup below a top one named holm*, deepest first.
pub fn cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for mount in cgroup_mounts() {
        for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("holm") && entry.path().is_dir() {
                descend(&entry.path(), &mut found);
            }
        }
    }
    found
}

fn descend(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            descend(&entry.path(), found);
        }
    }
    found.push(dir.to_owned());
}

/// Wipes the run directory of an instance, as a tool does that cleans up /run: it unmounts first.
pub fn wipe_run_directory(number: u32) {
    let run = format!("/run/holm/{number}");
    for image in fs::read_dir(format!("{run}/images")).into_iter().flatten().flatten() {
        let _ = Command::new("umount").arg("-q").arg(image.path()).status();
    }
    fs::remove_dir_all(run).expect("a run directory");
}

/// Mount points and sources, of all mounts that a process on the host sees.
fn mounts() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().map(|line| line.split(' ').skip(3).collect::<Vec<_>>().join(" ")).collect()
}

/// Names of network links.
fn links() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn nft_tables() -> Vec<String> {
    let Ok(output) = Command::new("nft").args(["list", "tables"]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Files behind loop devices.
fn loops() -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok())
        .collect()
}

/// Processes in one of Holm's cgroups.
fn processes() -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let groups = String::from_utf8_lossy(&read("cgroup")).into_owned();
        let Some(group) = groups
            .lines()
            .filter_map(|line| line.splitn(3, ':').nth(2))
            .find(|g| g.starts_with("/holm"))
        else {
            continue;
        };
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if line.is_empty() {
            continue; // a zombie, which its parent is about to reap
        }
        found.push(format!("{pid} {group} {line}"));
    }
    found
}

/// Files with `holm` in their path, `depth` levels deep.
fn files(dir: &Path, depth: u32, items: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.to_string_lossy().contains("holm") {
            let target =
                fs::read_link(&path).map(|to| format!(" -> {}", to.display())).unwrap_or_default();
            items.insert(format!("file {}{target}", path.display()));
            if depth > 1 && path.is_dir() && !path.is_symlink() {
                files(&path, depth - 1, items);
            }
        }
    }
}

/// A port that nobody listens on just now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_instances_apart() {
        let ours = [
            "cgroup /sys/fs/cgroup/unified/holm-2/web",
            "link h2-14",
            "nft table inet holm-2",
            "process 77 /holm-2/web/guest /sbin/init",
            "file /run/holm/2/web",
            "file /run/holm/instances/2 -> /srv/holm",
        ];
        for item in ours {
            assert!(is_of(item, 2), "{item}");
            assert!(!is_of(item, 22) && !is_of(item, 1), "{item}");
        }
        assert!(!is_of("file /run/holm/instances/22 -> /srv/2", 2));
    }
}
