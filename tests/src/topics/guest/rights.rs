//! Programs with more privileges than their users: setuid, file capabilities, ping.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};

use crate::command::Outcome;
use crate::guest::{exec, remove};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(setuid_and_file_capabilities_of_a_base_work),
    test!(rights_given_inside_work).bases(&["debian13"]),
    test!(everybody_can_ping).bases(&["debian13"]),
];

fn as_user(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    sandbox.holm(&[&["exec", "--user", "1000", "box", "--"], args].concat())
}

/// `cap_chown+ep`, as capability files hold it since Linux 2.6.24 (revision 2, with the bit that
/// makes it effective).
fn chown_capability() -> Vec<u8> {
    [0x0200_0001_u32, 1 << 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A tree with nothing but busybox, plain, setuid, and with a capability.
fn make_tree(tree: &Path) {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    let busybox = busybox.into_iter().find(|path| Path::new(path).exists()).expect("busybox");
    for directory in ["bin", "dev", "etc", "proc", "root", "run", "sys", "tmp"] {
        fs::create_dir_all(tree.join(directory)).unwrap();
    }
    fs::set_permissions(tree.join("tmp"), Permissions::from_mode(0o1777)).unwrap();
    for (name, mode) in [("busybox", 0o755), ("su", 0o4755), ("busybox-chown", 0o755)] {
        let path = tree.join("bin").join(name);
        fs::copy(busybox, &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let capable = tree.join("bin/busybox-chown");
    setxattr(&capable, "security.capability", &chown_capability(), XattrFlags::empty())
        .expect("a filesystem with capabilities");
    for applet in ["sh", "sleep", "id", "cat", "touch", "stat", "chown"] {
        symlink("busybox", tree.join("bin").join(applet)).unwrap();
    }
    // Root without a password: busybox's su asks for none then.
    fs::write(tree.join("etc/passwd"), "root::0:0:root:/root:/bin/sh\n").unwrap();
    fs::write(tree.join("etc/group"), "root:x:0:\n").unwrap();
}

fn setuid_and_file_capabilities_of_a_base_work(sandbox: &mut Sandbox) {
    let tree = sandbox.root().join("tree");
    make_tree(&tree);
    sandbox.holm(&["base", "import", "rights", &tree.display().to_string()]).ok();
    let args = ["launch", "box", "--base", "rights", "--net", "none", "--", "sleep", "100000"];
    sandbox.holm(&args).ok();
    let su = as_user(sandbox, &["su", "-c", "id -u"]);
    assert_eq!(su.stdout, "0\n", "{su}");

    as_user(sandbox, &["touch", "/tmp/mine"]).ok();
    let plain = as_user(sandbox, &["chown", "5:6", "/tmp/mine"]);
    assert!(plain.stderr.contains("not permitted"), "{plain}");
    as_user(sandbox, &["busybox-chown", "chown", "5:6", "/tmp/mine"]).ok();
    let seen = exec(sandbox, "box", "stat -c %u:%g /tmp/mine").ok();
    assert_eq!(seen.stdout, "5:6\n", "{seen}");
    // It may change owners of the guest's files, and has that capability only.
    let status = as_user(sandbox, &["busybox-chown", "cat", "/proc/self/status"]).ok();
    assert!(status.stdout.contains("CapEff:\t0000000000000001\n"), "{status}");
    remove(sandbox, "box");
}

/// An ephemeral guest of Debian's, without its init.
fn launch_debian(sandbox: &Sandbox, net: &str) {
    sandbox
        .holm(&["launch", "box", "--base", "debian13", "--net", net, "--", "sleep", "100000"])
        .ok();
}

fn rights_given_inside_work(sandbox: &mut Sandbox) {
    launch_debian(sandbox, "none");
    let script = "useradd joe && echo root:secret | chpasswd && cd /usr/local/bin && \
        cp /usr/bin/id roots-id && chmod 4755 roots-id && \
        cp /usr/bin/id lps-id && chown 7:8 lps-id && chmod 6755 lps-id && \
        cp /usr/bin/chown capable-chown && setcap cap_chown+ep capable-chown";
    exec(sandbox, "box", script).ok();
    let joe = |script: &str| {
        sandbox.holm(&["exec", "--user", "joe", "box", "--", "sh", "-c", script]).stdout
    };
    // Debian's own su, through PAM.
    assert_eq!(joe("echo secret | su -c 'id -u' 2>/dev/null"), "0\n");
    assert_eq!(joe("echo wrong | su -c 'id -u' 2>/dev/null"), "");
    assert_eq!(joe("roots-id -u; roots-id -ru"), "0\n1000\n");
    assert_eq!(joe("lps-id -u; lps-id -g"), "7\n8\n");
    let give = "touch /tmp/x; chown 5 /tmp/x; stat -c %u /tmp/x; capable-chown 5 /tmp/x; stat -c %u /tmp/x";
    assert_eq!(joe(give), "1000\n5\n");
    remove(sandbox, "box");
}

/// Debian 13's ping has no privileges: it needs `net.ipv4.ping_group_range`, which by default
/// allows nobody.
fn everybody_can_ping(sandbox: &mut Sandbox) {
    for (net, addresses) in
        [("private", &["127.0.0.1", "169.254.1.1"][..]), ("none", &["127.0.0.1"])]
    {
        launch_debian(sandbox, net);
        let own = exec(
            sandbox,
            "box",
            "ip -4 -o address show eth0 2>/dev/null | cut -d' ' -f7 | cut -d/ -f1",
        );
        let own = own.stdout.trim();
        for address in addresses.iter().copied().chain((!own.is_empty()).then_some(own)) {
            as_user(sandbox, &["ping", "-c1", "-w60", address]).ok();
            exec(sandbox, "box", &format!("ping -c1 -w60 {address}")).ok();
        }
        let script = "cp /usr/bin/ping /usr/local/bin/raw-ping && setcap cap_net_raw+ep /usr/local/bin/raw-ping && \
            echo 1 0 >/proc/sys/net/ipv4/ping_group_range";
        exec(sandbox, "box", script).ok();
        // Without the setting it takes the capability.
        assert_ne!(as_user(sandbox, &["ping", "-c1", "-w60", "127.0.0.1"]).code(), 0);
        as_user(sandbox, &["raw-ping", "-c1", "-w60", "127.0.0.1"]).ok();
        remove(sandbox, "box");
    }
}
