use std::collections::BTreeMap;

use super::identity;
use super::kind::Kind;

/// The environment of a guest's init, to which the guest's own `env` is added.
///
/// `uuid` is the guest's machine id (32 hexadecimal digits), `notify` the path of the readiness
/// socket inside.
pub fn environment(kind: Kind, uuid: &str, notify: Option<&str>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |key: &str, value: &str| env.insert(key.to_owned(), value.to_owned());
    set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set("TERM", "linux");
    set("HOME", "/root");
    // https://systemd.io/CONTAINER_INTERFACE: every init and many scripts read it.
    set("container", "holm");
    if let Some(path) = notify.filter(|_| kind.notifies()) {
        set("NOTIFY_SOCKET", path);
    }
    if let Kind::Systemd(_) = kind {
        set("container_uuid", &identity::uuid(uuid));
        // A pressure trigger of process 1 does not survive a checkpoint, after which systemd spins.
        set("MEMORY_PRESSURE_WATCH", "/dev/null");
    }
    env
}
