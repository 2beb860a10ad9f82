use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::check_settings::check_settings;
use super::directory::move_to;
use super::error::{Error, Result};
use super::handle::Guest;
use super::machine_id::NEW;
use super::requirements::check_filesystem;
use crate::Failed;
use crate::config::{self, Config};
use crate::disk::Layer;
use crate::pool::{Name, Pool};
use crate::store;

/// Creates a guest from the text of its guest.toml. It appears complete or not at all.
pub fn create(guest: &Guest<'_>, text: &str) -> Result<()> {
    let (pool, name) = (guest.pool(), guest.name());
    let config = config::parse(text, "guest.toml")?;
    check_settings(guest, &Config::default(), &config)?;
    if guest.has_dir()? {
        return Err(Error::Exists(name.clone()));
    }
    check_filesystem(pool)?;
    let (_base, _pin) = store::pin(pool, &Name::new(&config.base)?)?;
    pool.make_tmp()?;
    pool.clean_tmp();
    let new = pool.root().join("tmp").join(format!("new-{name}-{}", std::process::id()));
    let made = fill(pool, &new, text).and_then(|()| move_to(&new, &guest.dir()));
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
    let locked = guest.lock()?;
    let synced = guest.sync_entry();
    let limited = || {
        let ids = locked.ids(config.security.nesting)?;
        locked.place(ids).ready(&config.disk)?;
        Ok(())
    };
    if let Err(error) = synced.and_then(|()| limited()) {
        let _ = fs::remove_dir_all(guest.dir());
        return Err(error);
    }
    Ok(())
}

fn fill(pool: &Pool, new: &Path, text: &str) -> Result<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(new)
        .and_then(|()| fs::set_permissions(new, fs::Permissions::from_mode(0o700)))
        .map_err(|error| Error::io("make the directory", new, error))?;
    Layer::create_empty(new)?;
    fs::write(new.join(NEW), "").map_err(|error| Error::io("write", new, error))?;
    pool.write(&new.join("guest.toml"), text)?;
    fs::File::open(new)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::io("write", new, error))
}
