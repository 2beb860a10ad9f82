use super::file::{Content, File};

/// The first systemd with `MemoryPressureWatch=`; older ones log a warning for every unit.
const MEMORY_PRESSURE: u32 = 254;

/// Units that would fail in a guest, and have no condition that skips them there.
const MASKED: &[&str] = &[
    // autofs cannot be mounted in a user namespace, and the unit's only condition is
    // ConditionPathIsReadWrite=/proc/sys/. Guests that want binfmt_misc can mount it (Linux 6.7).
    "proc-sys-fs-binfmt_misc.automount",
];

/// Masked for systemd below 250, whose units do not yet have `ConditionCapability=CAP_SYS_RAWIO`.
const MASKED_OLD: &[&str] =
    &["sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount"];

/// systemd's own daemons that run all the time under `ProtectHostname=`, which is a nested uts
/// namespace: CRIU cannot dump those. The guest's other services keep their setting.
const NO_PROTECT_HOSTNAME: &[&str] =
    &["systemd-journald", "systemd-logind", "systemd-networkd", "systemd-resolved"];

/// Makes a guest's host keys, which must not be those that came with its base.
///
/// It runs before ssh at the first boot, and again if it was interrupted: the stamp is removed
/// last. No RSA key, which takes a slow machine seconds; every client since OpenSSH 6.5 (2014)
/// supports the others.
const SSH_KEYS: &str = "\
[Unit]
Description=Make this guest's own SSH host keys
ConditionPathExists=/etc/ssh/.holm-make-host-keys
ConditionPathExists=/usr/bin/ssh-keygen
Before=ssh.service ssh.socket sshd.service sshd.socket

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub'
ExecStart=/usr/bin/ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
ExecStart=/usr/bin/ssh-keygen -q -t ecdsa -N '' -f /etc/ssh/ssh_host_ecdsa_key
ExecStart=/bin/rm /etc/ssh/.holm-make-host-keys
";

/// Units and drop-ins for systemd of this version; `console`: /dev/console is a terminal;
/// `networkd`: names and texts of `.network` files.
pub fn files(version: u32, console: bool, networkd: &[(String, String)]) -> Vec<File> {
    let directory = |path: &str| File::new(path, Content::Directory(0o755));
    let unit = |name: &str| format!("/run/systemd/system/{name}");
    let mut files = vec![directory("/run/systemd"), directory("/run/systemd/system")];

    let old = if version < 250 { MASKED_OLD } else { &[] };
    // A getty on anything but a terminal exits at once, and systemd restarts it forever.
    let getty: &[&str] = if console { &[] } else { &["console-getty.service"] };
    files.extend(
        [MASKED, old, getty].concat().iter().map(|name| File::link(&unit(name), "/dev/null")),
    );

    // Of two drop-ins with the same file name only the more specific is read, so their names
    // differ.
    if version >= MEMORY_PRESSURE {
        files.push(directory(&unit("service.d")));
        let text =
            "# Pressure triggers do not survive a checkpoint.\n[Service]\nMemoryPressureWatch=no\n";
        files.push(File::text(&unit("service.d/10-holm.conf"), text));
    }
    for name in NO_PROTECT_HOSTNAME {
        files.push(directory(&unit(&format!("{name}.service.d"))));
        let text =
            "# A nested uts namespace cannot be checkpointed.\n[Service]\nProtectHostname=no\n";
        files.push(File::text(&unit(&format!("{name}.service.d/10-holm-hostname.conf")), text));
    }

    files.push(File::text(&unit("holm-ssh-host-keys.service"), SSH_KEYS));
    files.push(directory(&unit("multi-user.target.wants")));
    files.push(File::link(
        &unit("multi-user.target.wants/holm-ssh-host-keys.service"),
        "../holm-ssh-host-keys.service",
    ));
    if !networkd.is_empty() {
        files.push(directory("/run/systemd/network"));
    }
    for (name, text) in networkd {
        files.push(File::text(&format!("/run/systemd/network/{name}"), text));
    }
    files
}
