use std::path::PathBuf;

use holm::volume::{self, Files, Users};
use serde::Serialize;

use super::time::Time;

/// A volume.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Volume {
    /// Its name.
    name: String,
    /// When it was made.
    created_at: Time,
    /// The guest at whose start it was made, and whose files it began with; null if it began empty.
    from_guest: Option<String>,
    /// Where that guest had them.
    from_target: Option<String>,
    /// The most that it may hold, as guest.toml says; null without a limit.
    limit_bytes: Option<u64>,
    /// What it takes on the disk; null in `ls` where only a look at all its files would tell.
    used_bytes: Option<u64>,
    /// The guests whose guest.toml names it.
    guests: Vec<String>,
    /// The guests that run with it.
    running: Vec<String>,
    /// The directory on the host that guests see; null if it is in a disk image.
    data: Option<PathBuf>,
    /// The disk image that it is in; null if it is in none.
    image: Option<PathBuf>,
}

impl Volume {
    /// A volume with its users and, if somebody has looked, what it takes on the disk.
    pub fn new(volume: &volume::Volume, users: &Users, used: Option<u64>) -> Self {
        let meta = &volume.meta;
        let (data, image) = match volume.files.clone() {
            Files::Directory(data) => (Some(data), None),
            Files::Image(image) => (None, Some(image)),
        };
        Self {
            name: volume.name.to_string(),
            created_at: Time::new(meta.created),
            from_guest: meta.guest.clone(),
            from_target: meta.target.clone(),
            limit_bytes: meta.size,
            used_bytes: used,
            guests: users.named.clone(),
            running: users.running.clone(),
            data,
            image,
        }
    }
}
