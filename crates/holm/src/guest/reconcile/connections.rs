use super::super::error::Error;
use crate::failed::in_one_line;
use crate::net;
use crate::pool::{Name, Pool};
use crate::record::RunRecord;

/// Bounds the connections of native guests if something has begun to track connections since they
/// were started, and tells that: until then each of them could fill the host's table.
pub fn bound_connections(pool: &Pool, running: &[(&Name, &RunRecord)]) {
    let is_native = |(_, record): &&(&Name, &RunRecord)| !record.network.native.is_empty();
    let Some((_, record)) = running.iter().find(is_native) else { return };
    match net::bound_connections(&record.network, || Ok::<_, Error>(pool.cgroup()?.open()?)) {
        Ok(false) => {}
        Ok(true) => pool.report_repair(
            "connections of native guests are bounded now: the host has begun to track them",
        ),
        Err(error) => pool.report_repair(&format!(
            "connections of native guests are not bounded: {}",
            in_one_line(&error)
        )),
    }
}
