//! Finding what private layers have in common, and storing it as objects.

use std::fs;
use std::io;

use glob::Pattern;
use holm::pool::{Name, Pool};
use holm::store::{Found, Phase, Staging, UnifyOptions};
use holm_image::Objects;
use holm_image::layer::{Digests, Guest, Prepared, Rules, prepare};

use crate::error::{Error, Result};
use crate::import::sync;
use crate::report::{self, Report};

/// Unifies the guests, as far as that changes none of them.
pub fn unify(pool: &Pool, guests: &[Name], options: &UnifyOptions) -> Result<()> {
    if options.nice {
        // The priority of its reading and writing follows from this.
        let _ = rustix::process::nice(19);
    }
    let pattern =
        |text: &String| Pattern::new(text).map_err(|error| Error::Pattern(text.clone(), error));
    let rules = Rules {
        min_size: options.min_size,
        min_age: options.min_age,
        exclude: options.exclude.iter().map(pattern).collect::<Result<_>>()?,
    };
    let staging = Staging::new(pool)?;
    let new = staging.dir().join("new");
    let objects = Objects::open(pool.objects_dir(), new)?;
    let known: Vec<Guest> = guests.iter().map(|name| guest(pool, name)).collect::<Result<_>>()?;
    let mut report = Report::new();
    let prepared = prepare(&known, &rules, options.dry_run, &objects, &mut report.of(Phase::Read))?;
    if !options.dry_run {
        report.step(Phase::Sync, 0, None, "");
        sync(staging.dir())?;
        objects.commit()?;
        sync(staging.dir())?;
        for (name, prepared) in guests.iter().zip(&prepared) {
            keep(pool, name, &prepared.digests)?;
        }
    }
    for (name, Prepared { files, bytes, recent, .. }) in guests.iter().zip(prepared) {
        report::line(&Found { guest: name.to_string(), files, bytes, recent });
    }
    Ok(())
}

fn guest(pool: &Pool, name: &Name) -> Result<Guest> {
    let dir = pool.guest_dir(name);
    let known = Digests::read(&dir.join("digests"))?;
    Ok(Guest { name: name.to_string(), upper: dir.join("disk/upper"), known })
}

/// Stores what is known about a guest's files: for the next time, and for the switch; and which
/// objects are to be kept for it.
pub fn keep(pool: &Pool, name: &Name, digests: &Digests) -> Result<()> {
    let dir = pool.guest_dir(name);
    let objects = digests.iter().map(|known| format!("{} {}\n", known.object, known.size));
    // First what keeps the objects.
    for (file, text) in [("prepared", objects.collect()), ("digests", digests.to_text())] {
        let (new, path) = (dir.join(format!("{file}.new")), dir.join(file));
        match fs::write(&new, text).and_then(|()| fs::rename(&new, &path)) {
            // The guest was removed or renamed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            written => written.map_err(Error::io("write", &path))?,
        }
    }
    Ok(())
}
