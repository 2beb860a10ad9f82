//! The size limit of a volume, by project quota, or in an image where there is none.
//!
//! A volume's project id is one of those below the id ranges of the root's guests: N·2^26 + 1 to
//! N·2^26 + 65535 for instance number N, where there is no context id. It is in volume.toml once
//! all files of the volume have it.

use super::{Error, Files, Result, Volume, image, list, quota};
use crate::disk::{self, limit};
use crate::pool::{Name, Pool};
use crate::record::{Ids, RANGE};

/// The project id that a new volume gets: none without a size, and none where it is in an image.
/// The caller holds `lock/volumes` until volume.toml has it.
pub(super) fn project(pool: &Pool, volume: &Name, size: Option<u64>) -> Result<Option<u32>> {
    if size.is_none() || !quota::has_quota(pool)? {
        return Ok(None);
    }
    claim(pool, volume).map(Some)
}

/// A project id for a volume. The caller holds `lock/volumes` until volume.toml has it.
pub(super) fn claim(pool: &Pool, volume: &Name) -> Result<u32> {
    let mut taken = Vec::new();
    for (_, volume) in list(pool)? {
        // The files of a damaged one are there all the same.
        taken.extend(volume.ok().and_then(|volume| volume.meta.project));
    }
    let first = Ids::new(pool.instance(), 0, false).base;
    let ids = (first + 1..first + RANGE).filter(|id| !taken.contains(id));
    first_free(ids, volume, |id| limit::claim(pool.root(), id))
}

fn first_free(
    mut ids: impl Iterator<Item = u32>,
    volume: &Name,
    mut claim: impl FnMut(u32) -> std::result::Result<(), disk::Error>,
) -> Result<u32> {
    let found = ids.find_map(|id| match claim(id) {
        // Of a volume that is being removed, or of a command that was killed.
        Err(disk::Error::ProjectTaken { .. }) => None,
        claimed => Some(claimed.map(|()| id)),
    });
    Ok(found.ok_or_else(|| Error::NoProject(volume.clone()))??)
}

/// Limits a volume at the start of a guest that wants it to have `wanted`. What volume.toml says
/// wins; that a limit is not enforced is said. Guests may run with it.
pub(super) fn enforce(pool: &Pool, volume: &Volume, wanted: Option<u64>) -> Result<()> {
    let (name, dir) = (&volume.name, pool.volume_dir(&volume.name));
    if matches!(volume.files, Files::Image(_)) {
        return image::ready(pool, name, volume.meta.size);
    }
    let (project, size) = (volume.meta.project, volume.meta.size.or(wanted));
    if let Some(project) = project
        && quota::has_quota(pool)?
        && quota::is_applied(&dir, project)?
    {
        // A change of the limit may have been killed.
        return quota::apply(&dir, project, volume.meta.size);
    }
    // A backup has no project ids, and guests may have a volume before it is given a size.
    if let Some(size) = size {
        pool.report_repair(&format!(
            "volume {name}: its size limit is not enforced; it will be after \
             `holm volume set {name} --size {size}`, for which no guest may run with it"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_that_nothing_has() {
        let name = Name::new("pg").unwrap();
        let taken = |id: u32| Err(disk::Error::ProjectTaken { id, files: 1 });
        let odd = |id: u32| if id % 2 == 1 { Ok(()) } else { taken(id) };
        assert_eq!(first_free(4..9, &name, odd).unwrap(), 5);
        let error = first_free(4..9, &name, taken).unwrap_err().to_string();
        assert!(
            error.starts_with("volume pg cannot have a size limit: all project ids"),
            "{error}"
        );
    }
}
