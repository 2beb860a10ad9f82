//! The ways to run the same system many times.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::build::Holm;
use crate::peers::{self, Lxc};
use crate::rounds::Case;
use crate::stage::Stage;

/// How one sees that a guest is up: this text in a file.
pub struct Ready {
    pub file: PathBuf,
    pub text: &'static str,
}

/// Guests of one kind; all are ended and removed when it is dropped.
pub trait System {
    /// How many there are to be at most, where not as many as one asks for.
    fn most(&self) -> Option<usize> {
        None
    }
    /// What is made before the first, and not measured.
    fn prepare(&mut self) -> Result<(), String>;
    /// Starts one more; how one sees that it is up.
    fn start(&mut self, number: usize) -> Result<Ready, String>;
    /// Bytes on the disk.
    fn disk(&self) -> Result<f64, String>;
}

/// What the unit writes in a guest that is up; see `stage`.
const READY: &str = "bench/ready";
/// Sparse.
const BTRFS_SIZE: u64 = 16 << 30;
/// A machine takes a minute to boot, and its memory is the same each time.
const MACHINES: usize = 6;

type Made<'a> = Result<Box<dyn System + 'a>, String>;
type Make<'a> = fn(&'a Stage) -> Made<'a>;

/// Each in its turn: it is made when the one before has gone.
pub fn systems<'a>(stage: &'a Stage) -> impl Iterator<Item = (&'static str, Made<'a>)> {
    let kinds: [(&str, Make<'a>); 4] = [
        ("Holm", |stage| Ok(Box::new(OfHolm { holm: &stage.holms[0], names: Vec::new() }))),
        ("LXC on overlay", |stage| Ok(Box::new(OfLxc::new(stage, Store::Overlay)))),
        ("LXC on btrfs snapshots", |stage| Ok(Box::new(OfLxc::new(stage, Store::Btrfs)))),
        ("QEMU", |stage| Ok(Box::new(Machines { stage, children: Vec::new() }))),
    ];
    kinds.into_iter().map(move |(name, make)| (name, make(stage)))
}

struct OfHolm<'a> {
    holm: &'a Holm,
    names: Vec<String>,
}

impl System for OfHolm<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn start(&mut self, number: usize) -> Result<Ready, String> {
        let name = self.holm.guest(&format!("growth-{number}"));
        let one = [name];
        self.holm.remove_guests(&one);
        let [name] = &one;
        self.holm.run(&["create", name, "--base", "debian", "--set", "net.mode=none"])?;
        self.names.push(name.clone());
        self.holm.run(&["start", name])?;
        let upper = self.holm.root.join("guests").join(name).join("disk/upper");
        Ok(Ready { file: upper.join(READY), text: "" })
    }

    fn disk(&self) -> Result<f64, String> {
        du(&self.holm.root.join("guests"))
    }
}

impl Drop for OfHolm<'_> {
    fn drop(&mut self) {
        self.holm.remove_guests(&self.names);
    }
}

/// How containers get their roots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    /// A plain overlay each, above one directory.
    Overlay,
    /// A snapshot each, of one subvolume.
    Btrfs,
}

struct OfLxc<'a> {
    stage: &'a Stage,
    store: Store,
    /// Where the roots are.
    dir: PathBuf,
    count: usize,
    /// What the limits were.
    limits: Vec<(&'static str, String)>,
}

/// All containers have these in common, and a systemd has seven inotify instances of 128: LXC's
/// users raise them.
const LIMITS: [&str; 3] = [
    "/proc/sys/fs/inotify/max_user_instances",
    "/proc/sys/kernel/keys/maxkeys",
    "/proc/sys/kernel/keys/maxbytes",
];
const RAISED: &str = "1000000";

impl<'a> OfLxc<'a> {
    fn new(stage: &'a Stage, store: Store) -> Self {
        Self { stage, store, dir: stage.dir.join("growth"), count: 0, limits: Vec::new() }
    }

    fn image(&self) -> PathBuf {
        self.stage.dir.join("growth.img")
    }

    /// Makes the root of a container; where it is, and the directory with what it writes.
    fn root(&self, number: usize) -> Result<(String, PathBuf), String> {
        let own = self.dir.join(number.to_string());
        if self.store == Store::Btrfs {
            let debian = text(&self.dir.join("debian"));
            run(["btrfs", "subvolume", "snapshot", &debian, &text(&own)])?;
            return Ok((format!("growth/{number}"), own));
        }
        let (root, upper, work) = (own.join("root"), own.join("upper"), own.join("work"));
        for directory in [&root, &upper, &work] {
            fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        }
        let lower = self.stage.path("debian-shifted");
        let options =
            format!("lowerdir={lower},upperdir={},workdir={}", upper.display(), work.display());
        run(["mount", "-t", "overlay", "overlay", "-o", &options, &text(&root)])?;
        Ok((format!("growth/{number}/root"), upper))
    }

    fn command(&self, argv: &[&str]) -> Result<(), String> {
        let argv: Vec<String> = argv.iter().map(|&arg| arg.to_owned()).collect();
        peers::lxc(self.stage, "lxc", &argv)?.output().map(drop)
    }
}

impl System for OfLxc<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        fs::create_dir_all(&self.dir).map_err(|e| format!("{}: {e}", self.dir.display()))?;
        for file in LIMITS {
            let fail = |e| format!("{file}: {e}");
            self.limits.push((file, fs::read_to_string(file).map_err(fail)?));
            fs::write(file, RAISED).map_err(fail)?;
        }
        if self.store == Store::Btrfs {
            let image = self.image();
            File::create(&image)
                .and_then(|file| file.set_len(BTRFS_SIZE))
                .map_err(|e| format!("{}: {e}", image.display()))?;
            run(["mkfs.btrfs", "-q", "-f", &text(&image)])?;
            run(["mount", "-o", "loop", &text(&image), &text(&self.dir)])?;
            let debian = text(&self.dir.join("debian"));
            run(["btrfs", "subvolume", "create", &debian])?;
            run(["cp", "-a", &self.stage.path("debian-shifted/."), &debian])?;
        }
        Ok(())
    }

    fn start(&mut self, number: usize) -> Result<Ready, String> {
        self.count = number + 1;
        let (root, own) = self.root(number)?;
        let name = format!("growth-{number}");
        let config = peers::lxc_config(self.stage, &name, &root, Lxc::default())?;
        let directory = self.stage.path("lxc");
        self.command(&["lxc-start", "-d", "-P", &directory, "-n", &name, "-f", &config])?;
        Ok(Ready { file: own.join(READY), text: "" })
    }

    fn disk(&self) -> Result<f64, String> {
        if self.store == Store::Overlay {
            return du(&self.dir);
        }
        let place = text(&self.dir);
        run(["sync", "-f", &place])?;
        number(&Case::new("df", ["df", "--output=used", "--block-size=1", &place]).output()?)
    }
}

impl Drop for OfLxc<'_> {
    fn drop(&mut self) {
        let directory = self.stage.path("lxc");
        for (file, value) in &self.limits {
            let _ = fs::write(file, value);
        }
        for number in 0..self.count {
            let name = format!("growth-{number}");
            let _ = self.command(&["lxc-stop", "-k", "-P", &directory, "-n", &name]);
            if self.store == Store::Overlay {
                let root = self.dir.join(format!("{number}/root"));
                let _ = run(["umount", &text(&root)]);
            }
        }
        if self.store == Store::Btrfs {
            let _ = run(["umount", &text(&self.dir)]);
            let _ = fs::remove_file(self.image());
        }
        let _ = run(["rm", "-rf", "--one-file-system", &text(&self.dir)]);
        peers::clean_up(self.stage);
    }
}

/// The packages that a machine needs beyond those of a guest.
const MACHINE_PACKAGES: &str =
    "systemd-sysv,dbus,libpam-systemd,iproute2,linux-image-cloud-amd64,initramfs-tools";

struct Machines<'a> {
    stage: &'a Stage,
    children: Vec<Child>,
}

impl Machines<'_> {
    fn path(&self, what: &str, number: usize) -> PathBuf {
        self.stage.dir.join(format!("machine-{number}.{what}"))
    }
}

impl System for Machines<'_> {
    fn most(&self) -> Option<usize> {
        Some(MACHINES)
    }

    /// The disk that all have in common, with a kernel and an initial ramdisk beside it.
    fn prepare(&mut self) -> Result<(), String> {
        self.stage.bootstrap("machine", MACHINE_PACKAGES, |root| {
            let fstab = "/dev/vda / ext4 defaults 0 1\n";
            fs::write(root.join("etc/fstab"), fstab).map_err(|e| format!("fstab: {e}"))
        })?;
        let (image, root) = (self.stage.dir.join("machine.img"), self.stage.dir.join("machine"));
        if image.exists() {
            return Ok(());
        }
        let half = self.stage.dir.join("machine-half.img");
        let _ = fs::remove_file(&half);
        run(["mke2fs", "-q", "-t", "ext4", "-d", &text(&root), &text(&half), "2G"])?;
        fs::rename(&half, &image).map_err(|e| format!("{}: {e}", image.display()))
    }

    fn start(&mut self, number: usize) -> Result<Ready, String> {
        let (disk, console) = (self.path("qcow2", number), self.path("console", number));
        let (image, new) = (self.stage.path("machine.img"), text(&disk));
        let _ = fs::remove_file(&disk);
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", &image, &new])?;
        let boot = self.stage.dir.join("machine");
        let kernel = |name: &str| {
            // Debian's links in the root, which lead from there.
            let link = fs::read_link(boot.join(name)).map_err(|e| format!("{name}: {e}"))?;
            Ok::<PathBuf, String>(boot.join(link))
        };
        let child = Command::new("qemu-system-x86_64")
            .args(["-m", "512", "-nodefaults", "-display", "none", "-accel", "tcg,tb-size=64"])
            .args(["-append", "root=/dev/vda rw console=ttyS0 quiet"])
            .arg("-kernel")
            .arg(kernel("vmlinuz")?)
            .arg("-initrd")
            .arg(kernel("initrd.img")?)
            .arg("-drive")
            .arg(format!("if=virtio,file={}", disk.display()))
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("qemu-system-x86_64: {e}"))?;
        self.children.push(child);
        Ok(Ready { file: console, text: "login:" })
    }

    fn disk(&self) -> Result<f64, String> {
        (0..self.children.len()).map(|number| du(&self.path("qcow2", number))).sum()
    }
}

impl Drop for Machines<'_> {
    fn drop(&mut self) {
        for (number, child) in self.children.iter_mut().enumerate() {
            let _ = child.kill();
            let _ = child.wait();
            for what in ["qcow2", "console"] {
                let file = self.stage.dir.join(format!("machine-{number}.{what}"));
                let _ = fs::remove_file(file);
            }
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Bytes that a directory or a file takes on the disk.
fn du(path: &Path) -> Result<f64, String> {
    number(&Case::new("du", ["du", "-sx", "--block-size=1", &text(path)]).output()?)
}

/// The number in what a program prints.
fn number(text: &str) -> Result<f64, String> {
    let mut words = text.split_whitespace();
    words.find_map(|word| word.parse().ok()).ok_or(format!("no number: {text}"))
}

fn run<const N: usize>(argv: [&str; N]) -> Result<(), String> {
    Case::new(argv[0], argv).output().map(drop)
}
