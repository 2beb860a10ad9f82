//! What the measurements need on disk: root filesystems, and bases of the same files in a Holm root
//! for each build of holm.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::build::{Build, Holm};
use crate::options::Options;
use crate::rounds::Case;

/// First of the 65536 ids that the peers' user namespaces have on the host.
pub const SHIFT: u32 = 1_000_000;
/// The directories of a minimal root.
const DIRECTORIES: [&str; 11] =
    ["bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/sbin", "var/log"];
/// Applets that the measured commands use.
const APPLETS: [&str; 6] = ["sh", "true", "sleep", "cat", "mount", "ls"];
/// The Debian of the boot section.
const PACKAGES: &str = "systemd-sysv,dbus,libpam-systemd,iproute2";
/// The servers of the OLS paper (3.1): syslog, crond, sshd, apache, postfix and postgres.
const SERVERS: &str = "rsyslog,cron,openssh-server,apache2,postfix,postgresql";
/// Tells the host when the guest's systemd has finished booting; see `sections::boot`.
const READY_UNIT: &str = "\
[Unit]
Description=Tell the benchmark how the boot ended
[Service]
ExecStart=/bin/sh -c 'cd /bench; systemctl is-system-running --wait >state; mv state ready'
[Install]
WantedBy=multi-user.target
";

pub struct Stage {
    pub dir: PathBuf,
    report: PathBuf,
    /// How many guests the sections that fill the machine start at most.
    pub guests: usize,
    /// How much memory they have together, in MiB, where a section bounds it.
    pub memory: Option<u64>,
    /// The build that is measured, and after it the one that it is compared with, if there is one,
    /// and the first once more.
    pub holms: Vec<Holm>,
}

impl Stage {
    pub fn new(options: &Options) -> Result<Self, String> {
        let fail = |e| format!("{}: {e}", options.scratch.display());
        fs::create_dir_all(&options.scratch).map_err(fail)?;
        let dir = fs::canonicalize(&options.scratch).map_err(fail)?;
        let mut holms =
            vec![Holm::new(&options.holm, &options.import, dir.join("holm"), Build::Now)?];
        if let Some(before) = &options.before {
            let import = before.with_file_name("holm-import");
            holms.push(Holm::new(before, &import, dir.join("holm-before"), Build::Before)?);
            let again = dir.join("holm-again");
            holms.push(Holm::new(&options.holm, &options.import, again, Build::Again)?);
        }
        let report = options.out.clone();
        let Options { guests, memory, .. } = *options;
        let stage = Self { dir, report, guests, memory, holms };
        stage.minimal()?;
        stage.base("minimal")?;
        Ok(stage)
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    /// The type of the filesystem that it is on.
    pub fn filesystem(&self) -> String {
        let command = ["findmnt", "-n", "-o", "FSTYPE", "-T", &self.path(".")];
        let output = Case::new("findmnt", command).output();
        output.map_or("an unknown filesystem".to_owned(), |output| output.trim().to_owned())
    }

    /// Where a plot is written: beside the report.
    pub fn plot(&self, name: &str) -> PathBuf {
        self.report.with_file_name(format!("{name}.svg"))
    }

    /// Imports a directory of the stage as a base of its name, for each build of holm.
    pub fn base(&self, name: &str) -> Result<(), String> {
        self.holms.iter().try_for_each(|holm| holm.import(name, &self.path(name)))
    }

    /// A root with a static busybox and nothing else, as `minimal` and with shifted owners.
    fn minimal(&self) -> Result<(), String> {
        let root = self.dir.join("minimal");
        if root.join("bin/busybox").exists() {
            return Ok(());
        }
        let make = || -> std::io::Result<()> {
            for directory in DIRECTORIES {
                fs::create_dir_all(root.join(directory))?;
            }
            fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
            fs::write(root.join("etc/group"), "root:x:0:\n")?;
            for applet in APPLETS {
                symlink("busybox", root.join("bin").join(applet))?;
            }
            fs::copy("/usr/bin/busybox", root.join("bin/busybox"))
                .or_else(|_| fs::copy("/bin/busybox", root.join("bin/busybox")))?;
            copy(&root, &self.dir.join("minimal-shifted"))?;
            shift(&self.dir.join("minimal-shifted"))
        };
        make().map_err(|e| format!("{}: {e} (busybox-static is needed)", root.display()))
    }

    /// A Debian with systemd, as the base `debian` and as `debian-shifted`.
    pub fn debian(&self) -> Result<(), String> {
        self.bootstrap("debian", PACKAGES, add_ready_unit)?;
        self.shifted("debian")?;
        self.base("debian")
    }

    /// A Debian with the servers of the OLS paper, as the base `servers`.
    pub fn servers(&self) -> Result<(), String> {
        self.bootstrap("servers", &format!("{PACKAGES},{SERVERS}"), add_ready_unit)?;
        self.base("servers")
    }

    /// Makes the directory `NAME-shifted`, a copy with the owners that peers want, once.
    pub fn shifted(&self, name: &str) -> Result<(), String> {
        self.copied(name, &format!("{name}-shifted"), shift)
    }

    /// Makes a copy of a directory of the stage, once; `change` changes it.
    pub fn copied(
        &self,
        name: &str,
        copied: &str,
        change: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let (whole, half) = (self.dir.join(copied), self.dir.join(format!("{copied}-half")));
        if whole.exists() {
            return Ok(());
        }
        copy(&self.dir.join(name), &half)
            .and_then(|()| change(&half))
            .and_then(|()| fs::rename(&half, &whole))
            .map_err(|e| format!("{}: {e}", half.display()))
    }

    /// Makes a Debian with these packages in the directory `name`, once; `finish` adds to it.
    pub fn bootstrap(
        &self,
        name: &str,
        packages: &str,
        finish: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<(), String> {
        let root = self.dir.join(name);
        if root.exists() {
            return Ok(());
        }
        let half = self.dir.join(format!("{name}-half"));
        let fail = |e: std::io::Error| format!("{}: {e}", half.display());
        let _ = fs::remove_dir_all(&half);
        let include = format!("--include={packages}");
        let status = Command::new("mmdebstrap")
            .args(["--quiet", "--mode=root", "--variant=minbase", &include, "trixie"])
            .arg(&half)
            .stdin(Stdio::null())
            .status()
            .map_err(|e| format!("mmdebstrap: {e}"))?;
        if !status.success() {
            return Err(format!("mmdebstrap: {status}"));
        }
        empty_dev(&half).map_err(fail)?;
        finish(&half)?;
        fs::rename(&half, &root).map_err(fail)
    }

    /// Compiles a C program, static, and gives its path.
    pub fn compile(&self, name: &str, text: &str) -> Result<String, String> {
        let (source, program) = (self.path(&format!("{name}.c")), self.path(name));
        fs::write(&source, text).map_err(|e| format!("{source}: {e}"))?;
        let status =
            Command::new("cc").args(["-O2", "-static", "-o", &program]).arg(&source).status();
        match status {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("cc {source}: {status}")),
            Err(e) => Err(format!("cc: {e}")),
        }
    }
}

/// Holm takes no device nodes from others, and the peers make their own.
fn empty_dev(root: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join("dev"))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Adds the unit that reports, and a fixed machine id: first boot is not what is measured.
fn add_ready_unit(root: &Path) -> Result<(), String> {
    let units = root.join("etc/systemd/system");
    let add = || -> std::io::Result<()> {
        fs::write(units.join("bench-ready.service"), READY_UNIT)?;
        let wants = units.join("multi-user.target.wants");
        fs::create_dir_all(&wants)?;
        symlink("../bench-ready.service", wants.join("bench-ready.service"))?;
        fs::write(root.join("etc/machine-id"), "7c1d0d0f0e0b4a0a8f54a2c6d1a0c0de\n")?;
        fs::create_dir_all(root.join("bench"))
    };
    add().map_err(|e| format!("{}: {e}", root.display()))
}

/// Copies a tree as it is.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let _ = fs::remove_dir_all(to);
    let status = Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(format!("cp: {status}"))) }
}

/// Moves the owners of a tree into the peers' range, as their user namespaces want it.
fn shift(root: &Path) -> std::io::Result<()> {
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path)?;
        lchown(&path, Some(SHIFT + meta.uid()), Some(SHIFT + meta.gid()))?;
        if !meta.is_symlink() {
            // chown takes setuid and setgid away.
            fs::set_permissions(&path, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
        }
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}
