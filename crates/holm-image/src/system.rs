//! Detecting what kind of system a tree is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use composefs::fsverity::Sha256HashValue;
use composefs::tree::{Directory, Inode, LeafContent, RegularFile};

use crate::elf;
use crate::objects::Objects;
use crate::tree::Tree;

/// How many symbolic links are followed in resolving a path, as in the kernel.
const LINKS_MAX: u32 = 40;
/// How much of a file is read at most: an os-release with a large hole would take all memory.
const START: u64 = 64 << 10;
/// The paths of init. The first that exists counts.
const INITS: [&str; 4] =
    ["/sbin/init", "/lib/systemd/systemd", "/usr/lib/systemd/systemd", "/bin/init"];

/// The system in a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The path of its init, if it has one.
    pub init: Option<String>,
    /// What kind of init that is: "systemd 257", "sysvinit", "openrc", "runit".
    pub kind: Option<String>,
    /// `PRETTY_NAME` of its os-release.
    pub os: Option<String>,
    /// The architecture of its programs, as `uname -m` names it; empty if it contains none.
    pub arch: String,
}

impl System {
    /// Detects the system in `tree`, whose file bodies are in `objects`.
    pub fn detect(tree: &Tree, objects: &Objects) -> Self {
        let view = View { tree, objects };
        let init = INITS.iter().find_map(|path| Some((path, view.program(path)?)));
        let os = ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|p| view.text(p));
        let arch = init
            .as_ref()
            .into_iter()
            .map(|(_, real)| real.as_str())
            .chain(["/bin/sh", "/bin/busybox", "/usr/bin/env"])
            .find_map(|path| elf::machine(&view.read(path)?));
        Self {
            kind: init.as_ref().and_then(|(_, real)| view.kind(real)),
            init: init.map(|(path, _)| (*path).to_owned()),
            os: os.and_then(|text| pretty_name(&text)),
            arch: arch.unwrap_or_default().to_owned(),
        }
    }
}

/// The `PRETTY_NAME` of an os-release.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let quoted = |q: char| value.strip_prefix(q)?.strip_suffix(q);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    Some(value.replace("\\\"", "\""))
}

/// A tree in which paths are resolved as in a guest.
struct View<'a> {
    tree: &'a Tree,
    objects: &'a Objects,
}

impl View<'_> {
    /// The kind of the init at the path `real`.
    fn kind(&self, real: &str) -> Option<String> {
        let name = real.rsplit('/').next()?;
        Some(match name {
            "systemd" => match self.systemd_version() {
                Some(version) => format!("systemd {version}"),
                None => "systemd".into(),
            },
            "busybox" => "busybox".into(),
            "openrc-init" => "openrc".into(),
            _ if name.starts_with("runit") => "runit".into(),
            // In Debian's openrc package sysvinit is process 1 and runs openrc.
            _ if self.program("/sbin/openrc").is_some() => "openrc".into(),
            _ if self.text("/etc/inittab").is_some() => "sysvinit".into(),
            _ => return None,
        })
    }

    /// The version of systemd, from the name of its library.
    fn systemd_version(&self) -> Option<String> {
        let machines = ["x86_64", "aarch64", "i386", "riscv64"]
            .map(|m| format!("/usr/lib/{m}-linux-gnu/systemd"));
        let places =
            ["/usr/lib/systemd", "/lib/systemd"].into_iter().map(str::to_owned).chain(machines);
        places.into_iter().find_map(|place| {
            let dir = self.directory(&self.resolve(&place)?)?;
            dir.entries().find_map(|(name, _)| {
                let version =
                    name.to_str()?.strip_prefix("libsystemd-shared-")?.strip_suffix(".so")?;
                // Debian: 252.39-1~deb12u1.
                Some(version.split(['.', '-', '~']).next()?.to_owned())
            })
        })
    }

    /// The real path of the executable file at `path`.
    fn program(&self, path: &str) -> Option<String> {
        let real = self.resolve(path)?;
        let id = self.tree.find(real.as_bytes())?;
        let leaf = self.tree.leaf(id);
        let runs =
            matches!(leaf.content, LeafContent::Regular(_)) && leaf.stat.st_mode & 0o111 != 0;
        runs.then_some(real)
    }

    fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.read(path)?).into_owned())
    }

    /// The beginning of the file at `path`.
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let id = self.tree.find(self.resolve(path)?.as_bytes())?;
        match &self.tree.leaf(id).content {
            LeafContent::Regular(RegularFile::Inline(data)) => Some(data.to_vec()),
            LeafContent::Regular(RegularFile::External(id, _)) => {
                let mut start = Vec::new();
                let file = File::open(self.objects.path(id)).ok()?;
                file.take(START).read_to_end(&mut start).ok()?;
                Some(start)
            }
            _ => None,
        }
    }

    fn directory(&self, path: &str) -> Option<&Directory<Sha256HashValue>> {
        self.tree.root().get_directory(OsStr::new(path)).ok()
    }

    /// `path` with all symbolic links in it resolved inside the tree.
    fn resolve(&self, path: &str) -> Option<String> {
        let mut links = 0;
        let mut todo: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => {}
            }
            let parent = self.directory(&format!("/{}", done.join("/")))?;
            let target = match parent.lookup(OsStr::new(&part))? {
                Inode::Directory(_) => None,
                Inode::Leaf(id, _) => match &self.tree.leaf(*id).content {
                    LeafContent::Symlink(target) => Some(target),
                    _ => None,
                },
            };
            let Some(target) = target else {
                done.push(part);
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return None;
            }
            if target.as_bytes().starts_with(b"/") {
                done.clear();
            }
            todo.extend(target.to_str()?.rsplit('/').map(str::to_owned));
        }
        Some(format!("/{}", done.join("/")))
    }
}
