//! The places whose files are measured, and how a program runs in each.

use super::tree;
use crate::build::Holm;
use crate::meminfo::drop_caches;
use crate::peers::{self, Lxc};
use crate::rounds::Case;
use crate::stage::Stage;

/// The row that the others are compared with.
pub const HOST: &str = "host";

/// How the command line begins.
enum Entrance {
    Host,
    Guest(String),
    Lxc,
    Nspawn,
}

pub struct Place<'a> {
    pub name: String,
    /// Whether the measuring program gives itself a filter.
    pub filter: bool,
    pub read_only: bool,
    entrance: Entrance,
    stage: &'a Stage,
}

impl<'a> Place<'a> {
    fn new(stage: &'a Stage, name: &str, entrance: Entrance) -> Self {
        Self { name: name.to_owned(), filter: false, read_only: false, entrance, stage }
    }

    /// Runs a program there; what it prints.
    pub fn run(&self, command: &[&str]) -> Result<String, String> {
        let Self { name, stage, .. } = self;
        let case = match &self.entrance {
            Entrance::Host => {
                Case::new(name, tree::chroot(&stage.dir.join(tree::ON_HOST), command))
            }
            Entrance::Guest(guest) => {
                Case::new(name, stage.holms[0].argv(&[&["exec", guest, "--"], command].concat()))
            }
            Entrance::Lxc => {
                let lxc = Lxc::default();
                let config = peers::lxc_config(stage, "bench-roots", "programs-shifted", lxc)?;
                let directory = stage.path("lxc");
                let head =
                    ["lxc-execute", "-P", &directory, "-n", "bench-roots", "-f", &config, "--"];
                let argv: Vec<String> =
                    head.iter().chain(command).map(|&arg| arg.to_owned()).collect();
                peers::lxc(stage, name, &argv)?
            }
            Entrance::Nspawn => Case::new(name, peers::nspawn(stage, "programs-shifted", command)),
        };
        case.output()
    }
}

/// Settings of the guests, by the names of their rows.
const GUESTS: [(&str, &[&str]); 6] = [
    ("overlay", &[]),
    ("plain", &["--set", "disk.kind=plain"]),
    ("memory", &["--set", "disk.kind=memory"]),
    ("read-only", &["--set", "disk.kind=read-only"]),
    ("volume", &["-v", "bench-files:/bench"]),
    ("volume, image", &["-v", "bench-image:/bench:4G"]),
];
const VOLUMES: [&str; 2] = ["bench-files", "bench-image"];

/// All places; the guests and their volumes go at the end, whatever happens.
pub struct Places<'a> {
    pub all: Vec<Place<'a>>,
    holm: &'a Holm,
    guests: Vec<String>,
}

impl<'a> Places<'a> {
    pub fn new(stage: &'a Stage) -> Result<Self, String> {
        let holm = &stage.holms[0];
        let mut places = Self { all: Vec::new(), holm, guests: Vec::new() };
        places.all.push(Place::new(stage, HOST, Entrance::Host));
        places.all.push(Place::new(stage, "host, again", Entrance::Host));
        let filter = Place::new(stage, "filter", Entrance::Host);
        places.all.push(Place { filter: true, ..filter });
        for (name, settings) in GUESTS {
            let guest = holm.guest(&name.replace(", ", "-"));
            holm.remove_guests(std::slice::from_ref(&guest));
            places.guests.push(guest.clone());
            start(holm, &guest, settings)?;
            let place = Place::new(stage, name, Entrance::Guest(guest));
            places.all.push(Place { read_only: name == "read-only", ..place });
        }
        places.all.push(Place::new(stage, "LXC", Entrance::Lxc));
        places.all.push(Place::new(stage, "nspawn", Entrance::Nspawn));
        // What a run before has left.
        for place in places.all.iter().filter(|place| !place.read_only) {
            place.run(&["sh", "-c", &format!("rm -rf {}/work", tree::BENCH)])?;
        }
        // All begin with pages that the kernel has read, of whatever size it takes for that.
        drop_caches()?;
        Ok(places)
    }
}

fn start(holm: &Holm, guest: &str, settings: &[&str]) -> Result<(), String> {
    let minimal = ["--base", "programs", "--set", "net.mode=none", "--set", "init=minimal"];
    let sleep = ["--", "/bin/sleep", crate::build::SLEEP];
    holm.run(&[&["create", guest], &minimal[..], settings, &sleep[..]].concat())?;
    holm.run(&["start", guest]).map(drop)
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        self.holm.remove_guests(&self.guests);
        for volume in VOLUMES {
            let _ = self.holm.run(&["volume", "rm", volume]);
        }
    }
}
