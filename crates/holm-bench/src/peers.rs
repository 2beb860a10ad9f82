//! The command lines of the programs that Holm is measured beside, and what they leave behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::rounds::Case;
use crate::stage::{SHIFT, Stage};

/// Memory where it is limited, in bytes; CPUs are limited to one.
const MEMORY: u64 = 256 << 20;

/// Everything that a peer makes in cgroup hierarchies is below this.
const GROUP: &str = "holm-bench";

pub fn bwrap(stage: &Stage, command: &[&str]) -> Vec<String> {
    let root = stage.path("minimal");
    let head =
        ["bwrap", "--unshare-all", "--bind", &root, "/", "--proc", "/proc", "--dev", "/dev", "--"];
    join(&head, command)
}

/// What an lxc container is like.
#[derive(Clone, Copy, Default)]
pub struct Lxc<'a> {
    pub limits: bool,
    /// A host directory to be seen at /bench.
    pub bench: Option<&'a str>,
    /// Its network; none without.
    pub bridge: Option<Bridge<'a>>,
}

/// A veth pair on a bridge of the host's.
#[derive(Clone, Copy)]
pub struct Bridge<'a> {
    pub name: &'a str,
    pub gateway: &'a str,
    pub address: &'a str,
}

/// Writes the configuration of a container and gives its file.
pub fn lxc_config(stage: &Stage, name: &str, root: &str, lxc: Lxc) -> Result<String, String> {
    let mut text = format!(
        "lxc.uts.name = {name}
lxc.rootfs.path = dir:{}
lxc.idmap = u 0 {SHIFT} 65536
lxc.idmap = g 0 {SHIFT} 65536
lxc.mount.auto = proc:mixed sys:mixed cgroup:mixed
lxc.autodev = 1
lxc.pty.max = 4
lxc.tty.max = 0
lxc.seccomp.profile = /usr/share/lxc/config/common.seccomp
lxc.cgroup.dir.container = {GROUP}/{name}
lxc.cgroup.dir.monitor = {GROUP}/{name}-monitor
lxc.cgroup.dir.monitor.pivot = {GROUP}/pivot
",
        stage.path(root)
    );
    text += &match lxc.bridge {
        None => "lxc.net.0.type = empty\n".to_owned(),
        Some(Bridge { name, gateway, address }) => format!(
            "lxc.net.0.type = veth
lxc.net.0.link = {name}
lxc.net.0.flags = up
lxc.net.0.ipv4.address = {address}/24
lxc.net.0.ipv4.gateway = {gateway}
"
        ),
    };
    if lxc.limits {
        text += &format!(
            "lxc.cgroup.memory.limit_in_bytes = {MEMORY}
lxc.cgroup.cpu.cfs_quota_us = 100000
lxc.cgroup2.memory.max = {MEMORY}
lxc.cgroup2.cpu.max = 100000 100000
"
        );
    }
    if let Some(directory) = lxc.bench {
        text += &format!("lxc.mount.entry = {directory} bench none bind,create=dir 0 0\n");
    }
    fs::create_dir_all(stage.path("lxc")).map_err(|e| e.to_string())?;
    let file = stage.path(&format!("{name}.conf"));
    fs::write(&file, text).map_err(|e| format!("{file}: {e}"))?;
    Ok(file)
}

pub fn lxc_execute(
    stage: &Stage,
    row: &str,
    name: &str,
    limits: bool,
    command: &[&str],
) -> Result<Case, String> {
    let config = lxc_config(stage, name, "minimal-shifted", Lxc { limits, ..Lxc::default() })?;
    let directory = stage.path("lxc");
    let argv = ["lxc-execute", "-P", &directory, "-n", name, "-f", &config, "--"];
    lxc(stage, row, &join(&argv, command))
}

/// An LXC command that finds no newuidmap. Where there is one, LXC has it write the id maps, and it
/// refuses ranges that /etc/subuid does not give to root; without it LXC writes them itself.
pub fn lxc(stage: &Stage, row: &str, argv: &[String]) -> Result<Case, String> {
    let directory = stage.path("no-newuidmap");
    fs::create_dir_all(&directory).map_err(|e| format!("{directory}: {e}"))?;
    let mut argv = argv.to_vec();
    argv[0] = find(&argv[0]).unwrap_or(argv[0].clone());
    Ok(Case::new(row, argv).with_env("PATH", directory))
}

/// The path of a program.
pub fn find(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|directory| directory.join(program));
    found.into_iter().find(|file| file.exists())?.to_str().map(str::to_owned)
}

/// The same namespaces and ids as the others, from a bundle written here.
pub fn runc(stage: &Stage, name: &str, command: &[&str]) -> Result<Vec<String>, String> {
    let bundle = stage.path(&format!("{name}-bundle"));
    let ids = json!([{ "containerID": 0, "hostID": SHIFT, "size": 65536 }]);
    let mount = |at: &str, kind: &str, options: &[&str]| json!({ "destination": at, "type": kind, "source": kind, "options": options });
    let namespaces = ["pid", "mount", "uts", "ipc", "network", "user", "cgroup"]
        .map(|kind| json!({ "type": kind }));
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": command,
            "env": ["PATH=/bin"],
            "cwd": "/"
        },
        "root": { "path": stage.path("minimal-shifted") },
        "hostname": name,
        "mounts": [
            mount("/proc", "proc", &[]),
            mount("/dev", "tmpfs", &["nosuid", "mode=755"]),
            mount("/dev/pts", "devpts", &["newinstance", "ptmxmode=0666"]),
            mount("/sys", "sysfs", &["ro"]),
        ],
        "linux": {
            "uidMappings": ids,
            "gidMappings": ids,
            "cgroupsPath": format!("/{GROUP}/{name}"),
            "namespaces": namespaces
        },
    });
    fs::create_dir_all(&bundle)
        .and_then(|()| fs::write(Path::new(&bundle).join("config.json"), config.to_string()))
        .map_err(|e| format!("{bundle}: {e}"))?;
    let directory = stage.path("runc");
    Ok(["runc", "--root", &directory, "run", "-b", &bundle, name].map(str::to_owned).to_vec())
}

pub fn nspawn(stage: &Stage, root: &str, more: &[&str]) -> Vec<String> {
    let (root, ids) = (stage.path(root), format!("--private-users={SHIFT}:65536"));
    let head = [
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--private-network",
        &ids,
        "--private-users-ownership=off",
        "--timezone=off",
        "--resolv-conf=off",
        "--link-journal=no",
        "-D",
        &root,
    ];
    join(&head, more)
}

/// The same limits, as arguments of `holm`.
pub fn holm_limits() -> [String; 4] {
    [
        "--set".to_owned(),
        format!("memory.limit={MEMORY}"),
        "--set".to_owned(),
        "cpu.cap=1".to_owned(),
    ]
}

/// Removes what peers leave: lxc its pivot cgroups, a killed runc its state.
pub fn clean_up(stage: &Stage) {
    for entry in fs::read_dir(stage.path("runc")).into_iter().flatten().flatten() {
        let directory = stage.path("runc");
        let mut command = Command::new("runc");
        command.args(["--root", &directory, "delete", "-f"]).arg(entry.file_name());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mountinfo.lines().filter(|line| line.contains(" - cgroup")) {
        if let Some(point) = line.split(' ').nth(4) {
            remove_group(&Path::new(point).join(GROUP));
        }
    }
}

/// Removes a cgroup and those below, deepest first; one with processes stays.
fn remove_group(top: &Path) {
    let mut all: Vec<PathBuf> = vec![top.to_owned()];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        all.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
        next += 1;
    }
    for path in all.iter().rev() {
        let _ = fs::remove_dir(path);
    }
}

fn join(head: &[&str], tail: &[&str]) -> Vec<String> {
    head.iter().chain(tail).map(|&arg| arg.to_owned()).collect()
}
