use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Ids, Network, now, since_boot};
use crate::config::{Arch, Rlimit, Security};

/// What the host stores about a running guest, on its cgroup.
#[allow(
    clippy::struct_excessive_bools,
    reason = "a record of facts, each independent of the others"
)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// Init's process id on the host; 0 while there is none yet.
    #[serde(rename = "pid")]
    pub init_pid: i32,
    /// The inode of its pidfd, which identifies it even when its id is used again.
    #[serde(rename = "pid_inode", default)]
    pub init_inode: u64,
    /// Its monitor's process id, or that of the `holm run` that waits for it.
    #[serde(rename = "monitor")]
    pub monitor_pid: i32,
    /// The inode of the monitor's pidfd.
    #[serde(default)]
    pub monitor_inode: u64,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The same by `CLOCK_BOOTTIME`, in seconds since the host booted.
    #[serde(default)]
    pub started_boot: Option<u64>,
    /// Its base's name.
    pub base: String,
    /// The key of its image, which is mounted for all guests of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its ids.
    pub ids: Ids,
    /// Its network.
    #[serde(rename = "net")]
    pub network: Network,
    /// The signal that makes its init shut down; `None` if it has none, and `init 0` is executed in
    /// the guest.
    pub stop_signal: Option<i32>,
    /// What its processes may do.
    pub security: Security,
    /// The architecture that its programs see.
    pub arch: Arch,
    /// Resource limits of its processes, beyond the defaults.
    #[serde(default)]
    pub rlimits: BTreeMap<String, Rlimit>,
    /// The volumes that are mounted in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Process 1 is Holm's own init, which keeps the console.
    pub minimal: bool,
    /// Init sends `READY=1` when the guest is ready.
    #[serde(default = "default_notifies")]
    pub notifies: bool,
    /// It is an ephemeral guest (`holm run`): it has no directory, and is gone when it ends.
    #[serde(default)]
    pub ephemeral: bool,
    /// A command is stopping it: its monitor does not restart it.
    #[serde(default)]
    pub stopping: bool,
    /// When `stopping` expires, in seconds since the host booted, in case the command is killed;
    /// `None`: never.
    #[serde(default)]
    pub stopping_until: Option<u64>,
    /// When a new monitor adopted it, in seconds since 1970.
    #[serde(default)]
    pub adopted: Option<u64>,
}

impl RunRecord {
    /// Whether a command is stopping it.
    pub fn is_stopping(&self) -> bool {
        self.stopping && self.stopping_until.is_none_or(|until| since_boot() <= until)
    }

    /// Seconds since it was started, whether or not the wall clock was set since.
    pub fn age(&self) -> u64 {
        match self.started_boot {
            Some(started) => since_boot().saturating_sub(started),
            None => now().saturating_sub(self.started),
        }
    }
}

/// For records that were written before there was this field: all inits sent it then.
fn default_notifies() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NetMode;

    /// A record as the version wrote it that introduced the last of these fields.
    const STORED: &str = r#"{"pid":4242,"pid_inode":77,"monitor":4241,"monitor_inode":76,"started":1790000000,
        "started_boot":55,"base":"debian13","ids":{"context":3,"base":67305472,"count":65536},
        "net":{"mode":"private","instance":1,"context":3,"host_if":"h1-3","guest_v4":"10.97.0.3",
        "guest_v6":"fd00:686f:6c6d:1::3","gateway_v4":"169.254.1.1","gateway_v6":"fe80::1","mtu":1500,
        "publish":"8080-8081:80/tcp","peers":true,"host_access":false,"dns":["192.0.2.53"]},"stop_signal":37,
        "security":{"caps":["CAP_SYS_NICE"],"nesting":false,"userfaultfd":true,"packet_rings":false},"arch":"Native","rlimits":{"nofile":{"soft":10,"hard":20}},"minimal":false,"notifies":true,
        "ephemeral":false,"stopping":false,"stopping_until":null,"adopted":null}"#;

    #[test]
    fn the_stored_names_stay() {
        let record: RunRecord = serde_json::from_str(STORED).unwrap();
        assert_eq!((record.init_pid, record.init_inode), (4242, 77));
        assert_eq!((record.monitor_pid, record.monitor_inode), (4241, 76));
        assert_eq!(record.network.mode, NetMode::Private);
        assert_eq!(record.network.publish.len(), 2);
        let written: serde_json::Value = serde_json::to_value(&record).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(STORED).unwrap());
    }
}
