//! Files of the kernel, in /proc and the cgroup filesystem, and of the host; the output of nft.

use holm::cgroup::{Controller, Layout, field, parse_list};
use holm::config::Proto;
use holm::host::{overlapping, own_cgroup};
use holm::net::{Hook, dropping_chains, sockets};

/// `/proc/PID/mountinfo`, in which users of the host choose the paths.
pub fn mountinfo(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(layout) = Layout::parse(text) else { return false };
    let is_on_v1 =
        |controller: &Controller| layout.hierarchy_of(*controller).is_ok_and(|it| it.is_some());
    let v1 = Controller::ALL.iter().any(is_on_v1);
    assert!(!(v1 && layout.is_pure_v2().unwrap_or(true)), "controllers of v1 on pure v2");
    true
}

/// Flat keyed files such as `cpu.stat`, and lists of CPUs such as `cpuset.cpus`.
pub fn cgroup_files(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let keys = ["usage_usec", "oom_kill", "populated", "frozen"];
    let found = keys.iter().filter_map(|key| field(text, key)).count();
    let list = parse_list(text.trim_end());
    if let Ok(cpus) = &list {
        assert!(cpus.is_sorted_by(|a, b| a < b) && !cpus.is_empty());
    }
    found > 0 || list.is_ok()
}

/// `/proc/PID/cgroup`, and `/etc/subuid`.
pub fn proc_files(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let path = own_cgroup(text);
    assert!(path.is_none_or(|path| text.contains(&*path.to_string_lossy())));
    let ranges = overlapping(text);
    assert!(ranges.iter().all(|line| text.contains(line)));
    path.is_some() || !ranges.is_empty()
}

/// `/proc/net/tcp` and its like, in which the port 8080 is searched.
pub fn proc_net(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let listening = sockets(text, Proto::Tcp, 8080);
    let bound = sockets(text, Proto::Udp, 8080);
    assert!(listening.iter().all(|inode| bound.contains(inode)));
    !bound.is_empty()
}

/// What `nft list ruleset` prints. Other programs choose the names of tables and chains.
pub fn nft_chains(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let found = [Hook::Forward, Hook::Input].map(|hook| dropping_chains(text, hook)).concat();
    assert!(found.iter().all(|chain| text.contains(&chain.table) && text.contains(&chain.chain)));
    !found.is_empty()
}
