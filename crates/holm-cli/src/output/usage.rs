use holm::pool::Name;
use holm::store;
use serde::Serialize;

/// What a Holm root takes on the disk.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// The guests, by name.
    guests: Vec<GuestUsage>,
    /// The bases, by name.
    bases: Vec<BaseUsage>,
    /// The volumes, by name.
    volumes: Vec<VolumeUsage>,
    /// How many files are stored once for all bases and guests.
    objects: u64,
    /// Bytes of these files.
    objects_bytes: u64,
    /// Bytes that they would take in addition if every base and guest had its own.
    saved_bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GuestUsage {
    /// Its name.
    name: String,
    /// Bytes on the disk for it alone: private layer, image, log.
    own_bytes: u64,
    /// Bytes of the files that it shares since it was unified, and its base does not have.
    shared_bytes: u64,
    /// Bytes of those that nothing else has.
    exclusive_bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BaseUsage {
    /// Its name.
    name: String,
    /// Bytes of its files.
    size_bytes: u64,
    /// Bytes of those that nothing else has.
    exclusive_bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VolumeUsage {
    /// Its name.
    name: String,
    /// Bytes on the disk.
    used_bytes: u64,
}

impl Usage {
    /// What guests and bases take, and each volume.
    pub fn new(usage: &store::Usage, volumes: &[(Name, u64)]) -> Self {
        let guests = usage.guests.iter().map(|guest| GuestUsage {
            name: guest.name.to_string(),
            own_bytes: guest.own,
            shared_bytes: guest.shared,
            exclusive_bytes: guest.exclusive,
        });
        let bases = usage.bases.iter().map(|base| BaseUsage {
            name: base.name.to_string(),
            size_bytes: base.size,
            exclusive_bytes: base.exclusive,
        });
        Self {
            guests: guests.collect(),
            bases: bases.collect(),
            volumes: volumes
                .iter()
                .map(|(name, used)| VolumeUsage { name: name.to_string(), used_bytes: *used })
                .collect(),
            objects: usage.objects.0,
            objects_bytes: usage.objects.1,
            saved_bytes: usage.saved,
        }
    }
}

/// What a collection has removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collected {
    /// Whether it has run; if not, an import or a unification does, and it comes after that.
    done: bool,
    /// How many files were removed.
    objects: u64,
    /// Bytes that they took on the disk.
    freed_bytes: u64,
}

impl From<Option<store::Collected>> for Collected {
    fn from(collected: Option<store::Collected>) -> Self {
        let done = collected.is_some();
        let store::Collected { objects, bytes } = collected.unwrap_or_default();
        Self { done, objects, freed_bytes: bytes }
    }
}
