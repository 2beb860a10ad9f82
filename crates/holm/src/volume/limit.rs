//! The size limit of a volume.

use super::Volume;
use crate::pool::Pool;

/// Limits a volume to `size` bytes, or lifts its limit: when it is made, and at each start of a
/// guest that names it. The one place for that; no limit is enforced yet, which is said.
pub(super) fn apply(pool: &Pool, volume: &Volume, size: Option<u64>) {
    if size.is_some() {
        let name = &volume.name;
        pool.report_repair(&format!("volume {name}: its size limit is not enforced yet"));
    }
}
