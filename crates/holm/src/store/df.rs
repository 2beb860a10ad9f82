//! What bases and guests take on the disk, and what sharing saves.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::error::Error;
use super::objects::{self, Object};
use crate::Failed;
use crate::pool::{Name, Pool, disk_usage};

/// What a Holm root takes on the disk. All sizes are bytes.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Every base.
    pub bases: Vec<BaseUsage>,
    /// Every guest with a directory.
    pub guests: Vec<GuestUsage>,
    /// How many objects there are, and their lengths together.
    pub objects: (u64, u64),
    /// What the objects would take in addition if every base and every guest had its own.
    pub saved: u64,
}

/// A base.
#[derive(Clone, Debug)]
pub struct BaseUsage {
    /// Its name.
    pub name: Name,
    /// Its objects.
    pub size: u64,
    /// Those that nothing else has.
    pub exclusive: u64,
}

/// A guest.
#[derive(Clone, Debug)]
pub struct GuestUsage {
    /// Its name.
    pub name: Name,
    /// Its directory: the private layer, its image, its log.
    pub own: u64,
    /// The objects of its image that its base does not have.
    pub shared: u64,
    /// Those that nothing else has.
    pub exclusive: u64,
}

/// Looks at everything. `base` tells a guest's base, if that is known.
pub fn df(pool: &Pool, base: impl Fn(&Name) -> Option<String>) -> Result<Usage, Error> {
    let (bases, guests) = (pool.bases()?, pool.guests()?);
    let of_bases: Vec<(Name, Vec<Object>)> = bases
        .into_iter()
        .map(|name| Ok((name.clone(), list(&pool.base_dir(&name).join("objects"))?)))
        .collect::<Result<_, Error>>()?;
    let own = disk_usage(&guests.iter().map(|name| pool.guest_dir(name)).collect::<Vec<_>>())?;
    let of_guests: Vec<(Name, Vec<Object>)> = guests
        .into_iter()
        .map(|name| {
            let mut objects = list(&pool.guest_dir(&name).join("disk/objects"))?;
            if !objects.is_empty()
                && let Some(base) = base(&name)
                && let Some((_, below)) = of_bases.iter().find(|(name, _)| name.as_str() == base)
            {
                // Lists are sorted.
                objects.retain(|o| below.binary_search_by(|b| b.path.cmp(&o.path)).is_err());
            }
            Ok((name, objects))
        })
        .collect::<Result<_, Error>>()?;
    let mut users: HashMap<&str, u64> = HashMap::new();
    for object in of_bases.iter().chain(&of_guests).flat_map(|(_, objects)| objects) {
        *users.entry(&object.path).or_default() += 1;
    }
    let sum = |objects: &[Object]| objects.iter().map(|object| object.size).sum::<u64>();
    let alone = |objects: &[Object]| -> u64 {
        objects.iter().filter(|o| users[o.path.as_str()] == 1).map(|object| object.size).sum()
    };
    let mut usage = Usage { objects: (users.len() as u64, 0), ..Usage::default() };
    for (name, objects) in &of_bases {
        let (size, exclusive) = (sum(objects), alone(objects));
        usage.bases.push(BaseUsage { name: name.clone(), size, exclusive });
    }
    for (name, objects) in &of_guests {
        let (shared, exclusive) = (sum(objects), alone(objects));
        let own = own.get(&pool.guest_dir(name)).copied().unwrap_or(0);
        usage.guests.push(GuestUsage { name: name.clone(), own, shared, exclusive });
    }
    let mut counted = HashMap::new();
    for object in of_bases.iter().chain(&of_guests).flat_map(|(_, objects)| objects) {
        counted.insert(&object.path, object.size);
    }
    usage.objects.1 = counted.values().sum();
    let all: u64 = usage.bases.iter().map(|b| b.size).sum::<u64>()
        + usage.guests.iter().map(|g| g.shared).sum::<u64>();
    usage.saved = all - usage.objects.1;
    Ok(usage)
}

/// A list of objects; none if there is no list.
fn list(path: &Path) -> Result<Vec<Object>, Error> {
    match objects::read(path) {
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        list => list,
    }
}
