use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::Result;
use super::handle::Guest;
use super::parallel::start_in_parallel;
use super::status::list;
use crate::cgroup::Figures;
use crate::pool::Pool;

/// Starts the guests that have the key `autostart` and do not run: lower numbers first, equal ones
/// in parallel; the arguments are those of [`start_in_parallel`](super::start_in_parallel). If one
/// fails to start, the others are started nevertheless.
pub fn autostart<T: Serialize + DeserializeOwned>(
    pool: &Pool,
    boots: impl Fn(&str) -> bool,
    start: impl Fn(&str) -> T,
    settle: impl Fn(&str),
    mut report: impl FnMut(&str, Result<T>),
) -> Result<()> {
    let mut order: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for guest in list(pool, Figures::Current)?.iter().filter(|guest| guest.record.is_none()) {
        let name = guest.name.as_str();
        match Guest::new(pool, &guest.name).config() {
            Ok((_, config)) => {
                if let Some(autostart) = config.autostart {
                    order.entry(autostart.order).or_default().push(name.to_owned());
                }
            }
            Err(error) => report(name, Err(error)),
        }
    }
    order
        .values()
        .try_for_each(|names| start_in_parallel(names, &boots, &start, &settle, &mut report))
}
