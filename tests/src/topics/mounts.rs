//! What is mounted in a guest is what the mount table says, with these flags.

use std::path::Path;

use holm::rootfs::{BOOT_ID, TABLE, What, When, flag_names};

use crate::guest::{exec, launch_idle, remove};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_guest_for_one_command_has_the_table).bases(&["busybox"]),
    test!(a_guest_that_stays_has_the_table).bases(&["busybox"]),
    test!(a_guest_in_the_hosts_network_has_the_table).bases(&["busybox"]),
    test!(a_systemd_guest_has_the_table),
    test!(a_guest_with_nesting_has_the_table).bases(&["busybox"]),
    test!(no_sysfs_is_writable).bases(&["busybox"]),
    test!(mounts_reach_the_guests_other_namespaces).bases(&["busybox"]),
    test!(files_of_the_base_differ_from_a_disks).bases(&["debian13"]),
    test!(files_have_one_device_number).bases(&["busybox"]),
];

/// The mounts by the table of a guest that meets these conditions: mountpoint and flags. Its one
/// bind mount, if it has one, is read-only.
fn by_table(conditions: &[When], bind: Option<&str>) -> Vec<(String, String)> {
    let has = |when| match when {
        When::Always => true,
        When::Present(path) if path != BOOT_ID => Path::new(path).exists(),
        when => conditions.contains(&when),
    };
    let mut mounts: Vec<_> = TABLE
        .iter()
        .filter(|mount| has(mount.when))
        .map(|mount| match (mount.what, bind) {
            (What::Binds, Some(target)) => {
                (target.to_owned(), format!("ro,{}", flag_names(mount.flags)))
            }
            _ => (mount.at.to_owned(), flag_names(mount.flags)),
        })
        .collect();
    mounts.sort();
    mounts
}

/// The mounts in the text of a mountinfo file: mountpoint and flags.
fn mounted(mountinfo: &str) -> Vec<(String, String)> {
    let mut mounts: Vec<_> = mountinfo
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_flag = |option: &&str| ["ro", "nosuid", "nodev", "noexec"].contains(option);
            let flags: Vec<&str> = fields[5].split(',').filter(is_flag).collect();
            (fields[4].to_owned(), flags.join(","))
        })
        .collect();
    mounts.sort();
    mounts
}

const SHOW: &str = "cat /proc/self/mountinfo";

/// A guest with a network of its own, in which no containers may run.
const OWN_NETWORK: [When; 2] = [When::OwnNetwork, When::NoNesting];

fn a_guest_for_one_command_has_the_table(sandbox: &mut Sandbox) {
    let bind = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let run = ["run", "--base", "busybox", "--net", "none", "-v", &bind, "--", "sh", "-c", SHOW];
    let printed = sandbox.holm(&run).ok().stdout;
    let expected = by_table(&[&OWN_NETWORK[..], &[When::Named]].concat(), Some("/probe"));
    assert_eq!(mounted(&printed), expected);
}

fn a_guest_that_stays_has_the_table(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let printed = exec(sandbox, "box", SHOW).ok().stdout;
    let conditions = [When::Persistent, When::MinimalInit];
    let expected = by_table(&[&OWN_NETWORK[..], &conditions].concat(), None);
    assert_eq!(mounted(&printed), expected);
    remove(sandbox, "box");
}

fn a_guest_in_the_hosts_network_has_the_table(sandbox: &mut Sandbox) {
    let run = ["run", "--base", "busybox", "--net", "host", "--", "sh", "-c", SHOW];
    let printed = sandbox.holm(&run).ok().stdout;
    assert_eq!(mounted(&printed), by_table(&[When::HostNetwork], None));
}

fn a_guest_with_nesting_has_the_table(sandbox: &mut Sandbox) {
    let run = ["run", "--base", "busybox", "--net", "none", "--set", "security.nesting=true"];
    let printed = sandbox.holm(&[&run[..], &["--", "sh", "-c", SHOW]].concat()).ok().stdout;
    assert_eq!(mounted(&printed), by_table(&[When::OwnNetwork, When::Nesting], None));
}

/// [S5] Settings of network interfaces in a sysfs make threads of the host's kernel.
fn no_sysfs_is_writable(sandbox: &mut Sandbox) {
    // eth0, because the kernel gives lo to whoever guest root is when it makes it, which may be
    // before the id maps are there.
    let script = "cd /dev/.holm/sys/class/net/eth0 || exit 1
        mount -t sysfs -o ro fresh /mnt || exit 1
        mkdir /tmp/rw && mount -t sysfs fresh /tmp/rw
        mount -o remount,rw /mnt; mount -o remount,bind,rw /dev/.holm/sys
        for eth0 in . /sys/class/net/eth0 /mnt/class/net/eth0 /tmp/rw/class/net/eth0; do
            echo name > $eth0/ifalias && echo a setting by $eth0
        done 2>/dev/null; true";
    let run = ["run", "--base", "busybox", "--net", "private"];
    let with = |setting: &str| {
        let args = [&run[..], &["--set", setting, "--", "sh", "-c", script]].concat();
        sandbox.holm(&args).ok().stdout
    };
    assert_eq!(with("security.nesting=false"), "");
    // The test itself can see one that is writable.
    let open = with("security.nesting=true");
    assert!(open.contains("a setting by ."), "{open}");
}

/// The init mounts nothing itself, as a real systemd would.
fn a_systemd_guest_has_the_table(sandbox: &mut Sandbox) {
    let source = system(sandbox, |dir| fake_systemd(dir, "#!/bin/sh\nexec sleep 100000\n"));
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    sandbox.holm(&["launch", "box", "--base", "odd", "--init", "system", "--net", "none"]).ok();
    let printed = exec(sandbox, "box", "/bin/busybox cat /proc/self/mountinfo").ok().stdout;
    let conditions = [When::Persistent, When::Present(BOOT_ID)];
    let expected = by_table(&[&OWN_NETWORK[..], &conditions].concat(), None);
    assert_eq!(mounted(&printed), expected);
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// The mounts are shared inside, and none of them with the host.
fn mounts_reach_the_guests_other_namespaces(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let inside = exec(sandbox, "box", SHOW).ok().stdout;
    let groups: Vec<&str> = inside
        .lines()
        .map(|line| {
            let group = line.split(' ').find_map(|field| field.strip_prefix("shared:"));
            group.unwrap_or_else(|| panic!("not shared: {line}"))
        })
        .collect();
    let host = std::fs::read_to_string("/proc/self/mountinfo").expect("our mounts");
    for field in host.split_whitespace() {
        let peer = field.strip_prefix("shared:").or_else(|| field.strip_prefix("master:"));
        assert!(!peer.is_some_and(|group| groups.contains(&group)), "{field} in\n{inside}");
    }
    let script = "mkdir /tmp/m; unshare -m --propagation slave sleep 100 & sleep 0.2; \
                  mount -t tmpfs later /tmp/m; grep -c later /proc/$!/mountinfo; kill $!";
    assert_eq!(exec(sandbox, "box", script).ok().stdout, "1\n");
    remove(sandbox, "box");
}

/// As docs/guests.md says it.
fn files_of_the_base_differ_from_a_disks(sandbox: &mut Sandbox) {
    sandbox.holm(&["launch", "web", "--base", "debian13"]).ok();
    let perl = "cd /usr/bin && chmod 700 perl && stat -c %a perl perl5.*";
    assert_eq!(exec(sandbox, "web", perl).ok().stdout, "700\n755\n", "one of two hard links");
    let own = "cd /root && touch a && ln a b && chmod 700 a && stat -c %a a b";
    assert_eq!(exec(sandbox, "web", own).ok().stdout, "700\n700\n", "the guest's own");
    assert_eq!(exec(sandbox, "web", "cat /proc/cmdline").ok().stdout, "");
    let copy = "cp /etc/debian_version /root/copy && cmp /etc/debian_version /root/copy";
    exec(sandbox, "web", copy).ok();
    sandbox.holm(&["rm", "--force", "web"]).ok();
}

/// `find -xdev` and `du -x` see the whole root: files of the base, files of the guest, directories.
fn files_have_one_device_number(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let script =
        "echo new > /etc/new; stat -c %d / /bin /bin/busybox /etc /etc/new | sort -u | wc -l";
    assert_eq!(exec(sandbox, "box", script).ok().stdout.trim(), "1");
    remove(sandbox, "box");
}
