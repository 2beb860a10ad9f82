use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::folder::{ids, move_to};
use super::prepare::{NEW, fit, limits};
use super::{Error, Result};
use crate::Failed;
use crate::config;
use crate::pool::{Name, Pool};
use crate::store;

/// Makes a guest from the text of its guest.toml; it appears whole or not at all.
pub fn create(pool: &Pool, name: &Name, text: &str) -> Result<()> {
    let config = config::parse(text, "guest.toml")?;
    limits(&config).check_host(pool.cgroup()?.layout())?;
    if pool.guest_dir(name).exists() {
        return Err(Error::Exists(name.clone()));
    }
    fit(pool)?;
    let (_base, _pin) = store::pin(pool, &Name::new(&config.base)?)?;
    pool.make_tmp()?;
    pool.clean_tmp();
    let new = pool.root().join("tmp").join(format!("new-{name}-{}", std::process::id()));
    let made = fill(&new, text).and_then(|()| move_to(&new, &pool.guest_dir(name)));
    match made {
        Err(Error::Failed(Failed { source, .. }))
            if source.kind() == std::io::ErrorKind::AlreadyExists =>
        {
            let _ = fs::remove_dir_all(&new);
            return Err(Error::Exists(name.clone()));
        }
        Err(error) => {
            let _ = fs::remove_dir_all(&new);
            return Err(error);
        }
        Ok(()) => {}
    }
    let _lock = pool.lock_guest(name)?;
    if let Err(error) = ids(pool, name, config.security.nesting) {
        let _ = fs::remove_dir_all(pool.guest_dir(name));
        return Err(error);
    }
    Ok(())
}

fn fill(new: &Path, text: &str) -> Result<()> {
    let make = |path: &Path, mode: u32| {
        fs::DirBuilder::new()
            .mode(mode)
            .create(path)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
            .map_err(|error| Error::io("make the folder", path, error))
    };
    make(new, 0o700)?;
    make(&new.join("disk"), 0o755)?;
    // The upper folder is the guest's root folder: its mode is what the guest sees on /.
    make(&new.join("disk/upper"), 0o755)?;
    make(&new.join("disk/work"), 0o700)?;
    fs::write(new.join(NEW), "").map_err(|error| Error::io("write", new, error))?;
    crate::pool::write(&new.join("guest.toml"), text)?;
    fs::File::open(new)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io("write", new, error))
}
