//! Guests that have all had the same packages upgraded.

use std::path::Path;

use crate::build::Holm;
use crate::cost::{Cost, timed};
use crate::rounds::Case;
use crate::stage::Stage;

/// How many guests there are.
pub const COUNT: usize = 50;
/// What is upgraded: directories of the base that tar(1) writes anew, as dpkg does, with another
/// content.
const UPGRADED: &str = "usr/include usr/share/perl";
/// In each guest.
const UPGRADE: &str = "tar -xf /upgrade/upgrade.tar -C / && \
mkdir -p /srv/own && for i in 0 1 2 3 4 5 6 7 8 9; do head -c 100000 /dev/urandom >/srv/own/$i; done";
/// On the host: the archive of the upgrade, in $2, from the root in $1.
const MAKE_UPGRADE: &str = "\
set -e; rm -rf \"$2/half\"; mkdir -p \"$2/half\"; cd \"$1\"; cp -a --parents $3 \"$2/half\"; cd \"$2/half\"; \
find . -type f -links +1 -delete; find . -type f -exec sh -c 'for file; do echo upgraded >>\"$file\"; done' sh {} +; \
tar -cf ../upgrade.half .; cd ..; mv upgrade.half upgrade.tar; rm -rf half";

/// Makes the base and the archive of the upgrade.
pub fn make(stage: &Stage) -> Result<(), String> {
    crate::sections::roots::tree::make(stage)?;
    let directory = stage.path("upgrade");
    if Path::new(&directory).join("upgrade.tar").exists() {
        return Ok(());
    }
    let programs = stage.path("programs");
    Case::new("upgrade", ["sh", "-c", MAKE_UPGRADE, "sh", &programs, &directory, UPGRADED])
        .output()
        .map(drop)
}

/// They go at the end, whatever happens.
pub struct Guests<'a> {
    holm: &'a Holm,
    names: Vec<String>,
}

impl<'a> Guests<'a> {
    /// Stopped guests in which the upgrade was made.
    pub fn upgraded(stage: &'a Stage) -> Result<Self, String> {
        let holm = &stage.holms[0];
        let names: Vec<String> = (0..COUNT).map(|i| holm.guest(&format!("upgraded-{i}"))).collect();
        let guests = Self { holm, names };
        holm.remove_guests(&guests.names);
        holm.run(&["gc"])?;
        let mounts = format!("mounts={}:/upgrade:ro", stage.path("upgrade"));
        let settings = ["--base", "programs", "--set", "net.mode=none", "--set", "init=minimal"];
        for name in &guests.names {
            let rest = ["--set", &mounts, "--", "/bin/sh", "-c", UPGRADE];
            holm.run(&[&["create", name], &settings[..], &rest].concat())?;
            holm.run(&["start", name])?;
            holm.run(&["wait", name])?;
        }
        Ok(guests)
    }

    pub fn upper_directories(&self) -> Vec<String> {
        let upper = |name| self.holm.root.join("guests").join(name).join("disk/upper");
        self.names.iter().map(|name| upper(name).to_string_lossy().into_owned()).collect()
    }

    pub fn unify(&self) -> Result<Cost, String> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let import = format!("HOLM_IMPORT={}", self.holm.import.display());
        let unify = self.holm.argv(&[&["unify", "--min-age=0s"], &names[..]].concat());
        let command = [["env".to_owned(), import].to_vec(), unify].concat();
        timed(&command, &self.holm.root)
    }
}

impl Drop for Guests<'_> {
    fn drop(&mut self) {
        self.holm.remove_guests(&self.names);
        let _ = self.holm.run(&["gc"]);
    }
}
