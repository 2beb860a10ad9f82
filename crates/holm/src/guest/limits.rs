use crate::cgroup::Limits;
use crate::config::Config;

/// The limits in a guest's settings.
pub(super) fn limits(config: &Config) -> Limits {
    Limits {
        cpu_share: config.cpu.share,
        cpu_cap: config.cpu.cap,
        cpu_set: config.cpu.set.clone(),
        memory: config.memory.limit,
        swap: config.memory.swap,
        pids: config.pids.limit,
    }
}
