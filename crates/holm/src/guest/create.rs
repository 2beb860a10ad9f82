use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::folder::{ids, move_to};
use super::prepare::{NEW, fit, limits};
use super::{Error, Result};
use crate::Failed;
use crate::config;
use crate::disk::Layer;
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
    fs::DirBuilder::new()
        .mode(0o700)
        .create(new)
        .and_then(|()| fs::set_permissions(new, fs::Permissions::from_mode(0o700)))
        .map_err(|error| Error::io("make the folder", new, error))?;
    Layer::create(new).map_err(Error::Failed)?;
    fs::write(new.join(NEW), "").map_err(|error| Error::io("write", new, error))?;
    crate::pool::write(&new.join("guest.toml"), text)?;
    fs::File::open(new)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io("write", new, error))
}
