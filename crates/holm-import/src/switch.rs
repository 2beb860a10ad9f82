//! Giving a guest the layer in which the files that were prepared are objects.

use std::fs;
use std::io;
use std::path::Path;

use holm::pool::{Name, Pool};
use holm::store::{self, Base, Object, Switched};
use holm_image::Objects;
use holm_image::layer::{Digests, Rewrite, Rewritten};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::error::{Error, Result};
use crate::import::sync;
use crate::report;
use crate::unify::keep;

/// Makes the layer beside the one that the guest has, and exchanges the two. The caller has locked
/// the guest, which does not run.
pub fn switch(pool: &Pool, guest: &Name, base: &Name) -> Result<()> {
    let base = store::load(pool, base)?;
    let dir = pool.guest_dir(guest);
    let (disk, new) = (dir.join("disk"), dir.join("disk.new"));
    remove(&new)?;
    let _lock = Objects::lock(&pool.objects_dir())?;
    let digests = Digests::read(&dir.join("digests"))?;
    let store = pool.objects_dir();
    let rewrite = Rewrite { base: &base.image, disk: &disk, digests: &digests, store: &store };
    let made = rewrite.plan()?;
    if made.files == 0 {
        report::line(&Switched::default());
        return Ok(());
    }
    let written = write(&made, &disk, &new, &base);
    if let Err(error) = written {
        let _ = remove(&new);
        return Err(error);
    }
    renameat_with(CWD, &new, CWD, &disk, RenameFlags::EXCHANGE)
        .map_err(Error::io("exchange", &disk))?;
    sync(&dir)?;
    remove(&new)?;
    keep(pool, guest, &made.digests(&disk.join("upper"))?)?;
    report::line(&Switched { files: made.files, freed: made.freed });
    Ok(())
}

fn write(made: &Rewritten, disk: &Path, new: &Path, base: &Base) -> Result<()> {
    fs::create_dir(new).map_err(Error::io("make the directory", new))?;
    let permissions = fs::metadata(disk).map_err(Error::io("look at", disk))?.permissions();
    fs::set_permissions(new, permissions).map_err(Error::io("set the mode of", new))?;
    made.write(disk, new)?;
    let line =
        |(path, size): (&String, &u64)| format!("{}\n", Object { path: path.clone(), size: *size });
    let objects: String = made.objects.iter().map(line).collect();
    let charged = store::beyond(base, &made.objects)?.to_string();
    let identity = base.identity();
    let files: [(&str, &[u8]); 4] = [
        ("image", &made.image),
        ("objects", objects.as_bytes()),
        ("base", identity.as_bytes()),
        ("charged", charged.as_bytes()),
    ];
    for (name, data) in files {
        let path = new.join(name);
        fs::write(&path, data).map_err(Error::io("write", &path))?;
    }
    sync(new)
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", dir)(error))
        }
        _ => Ok(()),
    }
}
