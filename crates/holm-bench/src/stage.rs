//! What the races need on disk: root file systems, bases of the same files, and a Holm root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::options::Options;

/// First of the 65536 ids that the peers' user namespaces have on the host.
pub const SHIFT: u32 = 1_000_000;
/// Applets that the measured commands use.
const APPLETS: [&str; 6] = ["sh", "true", "sleep", "cat", "mount", "ls"];
/// The Debian of the systemd race.
const PACKAGES: &str = "systemd-sysv,dbus,libpam-systemd,iproute2";
/// Tells the host when the guest's systemd has done all; see `sections::boot`.
const READY_UNIT: &str = "\
[Unit]
Description=Tell the benchmark how the boot ended
[Service]
ExecStart=/bin/sh -c 'systemctl is-system-running --wait >/bench/state; mv /bench/state /bench/ready'
[Install]
WantedBy=multi-user.target
";

pub struct Stage {
    pub dir: PathBuf,
    pub holm: String,
    import: PathBuf,
}

impl Stage {
    pub fn new(options: &Options) -> Result<Self, String> {
        fs::create_dir_all(&options.scratch)
            .map_err(|e| format!("{}: {e}", options.scratch.display()))?;
        let absolute =
            |path: &Path| fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()));
        let stage = Self {
            dir: absolute(&options.scratch)?,
            holm: absolute(&options.holm)?.to_string_lossy().into_owned(),
            import: absolute(&options.import)?,
        };
        stage.minimal()?;
        stage.base("minimal", "minimal")?;
        Ok(stage)
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    /// A holm command line in the benchmark's own root.
    pub fn holm(&self, args: &[&str]) -> Vec<String> {
        let root = self.path("holm");
        let begin = [self.holm.as_str(), "--root", &root];
        begin.iter().chain(args).map(|&word| word.to_owned()).collect()
    }

    /// Runs holm; standard output, or what it complained about.
    pub fn run_holm(&self, args: &[&str]) -> Result<String, String> {
        let line = self.holm(args);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env("HOLM_IMPORT", &self.import).stdin(Stdio::null());
        let output = command.output().map_err(|e| format!("{}: {e}", self.holm))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("holm {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Ends and removes guests, whichever of them are there.
    pub fn drop_guests(&self, names: &[String]) {
        for name in names {
            let _ = self.run_holm(&["kill", name]);
            let _ = self.run_holm(&["rm", name]);
        }
    }

    /// Imports a folder of the stage as a base, once.
    fn base(&self, name: &str, folder: &str) -> Result<(), String> {
        if self.run_holm(&["base", "inspect", name]).is_ok() {
            return Ok(());
        }
        self.run_holm(&["base", "import", name, &self.path(folder)]).map(drop)
    }

    /// A root with a static busybox and nothing else, as `minimal` and with shifted owners.
    fn minimal(&self) -> Result<(), String> {
        let root = self.dir.join("minimal");
        if root.join("bin/busybox").exists() {
            return Ok(());
        }
        let make = || -> std::io::Result<()> {
            for folder in [
                "bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/sbin",
                "var/log",
            ] {
                fs::create_dir_all(root.join(folder))?;
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
        let (root, shifted) = (self.dir.join("debian"), self.dir.join("debian-shifted"));
        if !shifted.exists() {
            let half = self.dir.join("debian-half");
            let fail = |e: std::io::Error| format!("{}: {e}", half.display());
            if !root.exists() {
                let _ = fs::remove_dir_all(&half);
                let include = format!("--include={PACKAGES}");
                let status = Command::new("mmdebstrap")
                    .args(["--quiet", "--mode=root", "--variant=minbase", &include, "trixie"])
                    .arg(&half)
                    .stdin(Stdio::null())
                    .status()
                    .map_err(|e| format!("mmdebstrap: {e}"))?;
                if !status.success() {
                    return Err(format!("mmdebstrap: {status}"));
                }
                empty_dev(&half).and_then(|()| tell_when_ready(&half)).map_err(fail)?;
                fs::rename(&half, &root).map_err(fail)?;
            }
            copy(&root, &half)
                .and_then(|()| shift(&half))
                .and_then(|()| fs::rename(&half, &shifted))
                .map_err(fail)?;
        }
        self.base("debian", "debian")
    }

    /// The kernel's floor, compiled.
    pub fn floor(&self) -> Result<String, String> {
        let (source, program) = (self.dir.join("floor.c"), self.path("floor"));
        fs::write(&source, include_str!("../floor.c"))
            .map_err(|e| format!("{}: {e}", source.display()))?;
        let status =
            Command::new("cc").args(["-O2", "-static", "-o", &program]).arg(&source).status();
        match status {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("cc floor.c: {status}")),
            Err(e) => Err(format!("cc: {e}")),
        }
    }
}

impl Drop for Stage {
    /// The root stays for the next run; nothing of it stays on the host.
    fn drop(&mut self) {
        if let Err(problem) = self.run_holm(&["release"]) {
            eprintln!("holm-bench: {problem}");
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

/// Puts the unit in that reports, and a fixed machine id: first boot is not what is measured.
fn tell_when_ready(root: &Path) -> std::io::Result<()> {
    let units = root.join("etc/systemd/system");
    fs::write(units.join("bench-ready.service"), READY_UNIT)?;
    fs::create_dir_all(units.join("multi-user.target.wants"))?;
    symlink("../bench-ready.service", units.join("multi-user.target.wants/bench-ready.service"))?;
    fs::write(root.join("etc/machine-id"), "7c1d0d0f0e0b4a0a8f54a2c6d1a0c0de\n")?;
    fs::create_dir_all(root.join("bench"))
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
