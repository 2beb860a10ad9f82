use std::path::PathBuf;

use holm::store;
use serde::Serialize;

use super::time::Time;

/// A base.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Base {
    /// Its name.
    name: String,
    /// The distribution, as its os-release names it; null without one.
    os: Option<String>,
    /// The machine its programs are for, as `uname -m` names it; null without programs.
    arch: Option<String>,
    /// The init it brings; null without one.
    init: Option<Init>,
    /// What it was imported from, as it was given.
    source: String,
    /// When it was imported.
    imported_at: Time,
    /// Files, directories and links in it.
    files: u64,
    /// Bytes of all its files; hard-linked ones count once.
    size_bytes: u64,
    /// Bytes of its files that no other base has now.
    own_bytes: u64,
    /// Its metadata image on the host.
    image: PathBuf,
    /// What is missing or cut off, with the remedy; null if nothing is.
    damage: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Init {
    /// Its path in the base; null if minimal init has to do.
    path: Option<String>,
    /// What it is: `systemd 257`, `sysvinit`, `openrc`, `runit`; null if Holm cannot tell.
    kind: Option<String>,
}

impl From<&store::Base> for Base {
    fn from(base: &store::Base) -> Self {
        let meta = &base.meta;
        let (path, kind) = (meta.system_init.clone(), meta.init_kind.clone());
        Self {
            name: base.name.to_string(),
            os: meta.os.clone(),
            arch: Some(meta.arch.clone()).filter(|arch| !arch.is_empty()),
            init: (path.is_some() || kind.is_some()).then_some(Init { path, kind }),
            source: meta.source.clone(),
            imported_at: Time::new(meta.created),
            files: meta.files,
            size_bytes: meta.bytes,
            own_bytes: meta.own_bytes,
            image: base.image.clone(),
            damage: base.damage.clone(),
        }
    }
}
