//! The messages of troubleshooting.md: each is said by Holm where the page says so.

use super::reader::Reader;
use super::{DOCUMENTS, inline};
use crate::sandbox::Sandbox;

/// Where a message is said.
#[derive(Clone, Copy)]
enum Said {
    /// By a command of this script.
    Here(&'static str),
    /// In this test, which does what makes Holm say it.
    In(&'static str),
    /// In this unit test, of the file: here it would take a gigabyte of memory.
    Unit(&'static str, &'static str),
}
use Said::{Here, In, Unit};

/// How each message begins. The scripts have the guest `web` and the base `busybox`, and find a new
/// directory.
const MESSAGES: [(&str, Said); 118] = [
    // The machine
    ("holm must be run as root", In("host::missing::not_root")),
    ("there is no Holm root at", Here("holm --root nowhere ls")),
    ("DIR is not a Holm root,", Here("mkdir d; touch d/x; holm --root d create x --base busybox")),
    ("the Holm root DIR belongs", Here("mkdir d; chown 1 d; holm --root d base import b busybox")),
    (
        "other users of the host could",
        Here("holm --root d base import b busybox; chmod 755 d; holm --root d create x --base b"),
    ),
    ("other users of the host can ", In("host::filesystems::a_root_on_fat")),
    (
        "no cgroup v2 hierarchy",
        Here(
            "holm create c --base busybox --net none; unshare -m sh -c 'umount -l \
          $(findmnt -nt cgroup2 -o TARGET | head -n 1); exec \"$HOLM\" start c'",
        ),
    ),
    (
        "cannot enable cgroup controllers",
        In("cgroup::lifecycle::processes_in_the_top_cgroup_are_told"),
    ),
    (
        "memory.limit cannot be enforced",
        Here(
            "unshare -m sh -c 'v1=$(findmnt -nt cgroup -O memory -o TARGET | head -n 1); umount \
          -l ${v1:-/nowhere}; sed s/memory// /sys/fs/cgroup/cgroup.controllers > without; mount \
          --bind without /sys/fs/cgroup/cgroup.controllers; exec \"$HOLM\" launch l --base busybox \
          --net none --memory 64M -- true'",
        ),
    ),
    ("the Holm root is on an unsupported", In("host::filesystems::a_root_on_tmpfs")),
    (
        "the guest's root was mounted read-only",
        Here(
            "holm create r --base busybox --net none -- true; holm start r; holm wait r; chattr +i \
          \"$HOLM_ROOT\"/guests/r/disk/work; holm start r; chattr -i \
          \"$HOLM_ROOT\"/guests/r/disk/work",
        ),
    ),
    ("nothing can be written in the Holm root", In("accidents::room::disk_read_only")),
    ("the host has no pseudo-terminal", In("accidents::restarts::without_a_terminal")),
    ("guest NAME is not restarted", In("accidents::restarts::without_its_base")),
    (
        "cannot mount KIND",
        Here(
            "holm create k --base busybox --net none -- true; strace -fqo strace.log -e \
          inject=fsopen:error=ENODEV:when=1 \"$HOLM\" start k",
        ),
    ),
    (
        "all 27 instance numbers",
        Here(
            "for i in $(seq 27); do mkdir -p r$i/stage; done; unshare -m sh -c 'mount -t tmpfs t \
          /run; mkdir -p /run/holm/instances; for i in $(seq 27); do ln -s $PWD/r$i \
          /run/holm/instances/$i; done; exec \"$HOLM\" --root new base import b busybox'",
        ),
    ),
    ("another holm command is running", In("accidents::races::release_against_run")),
    ("no id range is left", In("accidents::room::no_user_ids_left")),
    (
        "the program holm-import is neither",
        Here("cp \"$HOLM\" alone; env -u HOLM_IMPORT ./alone base import x busybox"),
    ),
    (
        "cannot set rlimits.NAME",
        Here(
            "holm create r --base busybox --net none --set rlimits.nofile=2000000 -- true; \
          setpriv --bounding-set -sys_resource \"$HOLM\" start r",
        ),
    ),
    // Names and settings
    ("there is no guest NAME", Here("holm status we")),
    ("there is already a guest", Here("holm create web --base busybox")),
    ("\"a/b\" cannot be a name", Here("holm create a/b --base busybox")),
    ("no base named", Here("holm create x --base nosuch")),
    ("guest.toml:3:1", In("documents::mistakes_look_as_shown")),
    ("memory.limit=512MB", Here("holm set web memory.limit=512MB")),
    (
        "guest.toml of NAME has changed",
        Here(
            "echo '\"$HOLM\" set web hostname=other; echo \"# more\" >> $1' > change; \
          EDITOR=\"sh $PWD/change\" holm edit web",
        ),
    ),
    ("guest NAME shares nothing", In("unify::verb::a_guest_that_shares_nothing_is_left_out")),
    ("the guest's private layer was unified", In("unify::verb::another_base_below_is_refused")),
    (
        "NAME starts with the files",
        Here(
            "holm create s --base busybox --net none -- true; here=$HOLM_ROOT/guests/s; mkdir \
          $here/disk.new; chattr +i $here/disk.new; touch $here/unify; holm start s; chattr -i \
          $here/disk.new",
        ),
    ),
    ("disk.inodes needs", In("disk::image::what_an_image_cannot_do_is_refused")),
    ("the guest has files already", In("disk::image::what_an_image_cannot_do_is_refused")),
    (
        "the guest's files are in a disk image, which",
        In("disk::image::what_an_image_cannot_do_is_refused"),
    ),
    (
        "the guest's files are in a disk image, whose",
        In("disk::image::what_an_image_cannot_do_is_refused"),
    ),
    ("the disk image DISK cannot become", In("disk::image::its_size_changes")),
    ("the disk image DISK is still mounted", In("disk::image::a_size_waits_for_the_old_mount")),
    ("the disk image DISK cannot be used", In("disk::image::a_damaged_image")),
    ("a guest with disk.kind = \"plain\" can have limits", In("disk::plain::limits_need_quota")),
    ("the root of guest NAME is a copy", In("disk::plain::it_outlives_restarts_and_not_a_rebuild")),
    ("disk.kind is fixed", In("disk::memory::a_guest_that_forgets")),
    (
        "guest NAME is protected",
        Here(
            "holm create p --base busybox --set protect=true; holm rm p; holm set p protect=false",
        ),
    ),
    // Start
    ("guest NAME is already running", Here("holm start web")),
    (
        "base BASE has no init",
        Here("mkdir d; echo > d/x; holm base import e d; holm launch e --base e --net none"),
    ),
    (
        "cannot run init, which is PATH: the program",
        Here(
            "mkdir -p d/sbin; echo '#!/bin/sh' > d/sbin/init; chmod 755 d/sbin/init; holm base \
          import l d; holm launch l --base l --net none",
        ),
    ),
    (
        "cannot run init, which is PATH: it is not executable",
        In("init::broken::an_init_that_the_guest_has_broken"),
    ),
    (
        "cannot run init, which is PATH: it is not a program",
        In("init::broken::an_init_of_another_machine"),
    ),
    (
        "the guest's first process was killed",
        In("init::broken::a_first_process_that_is_killed_before_init_runs"),
    ),
    ("memory.limit = 102400", Here("holm create t --base busybox --memory 100K")),
    (
        "cannot bind SOURCE: it does not exist",
        Here("holm launch b --base busybox --net none -v /nowhere:/x -- true"),
    ),
    (
        "cannot bind SOURCE: it is, or is",
        Here("ln -s / link; holm launch b --base busybox --net none -v $PWD/link:/x -- true"),
    ),
    (
        "cannot bind SOURCE: its filesystem",
        Here("holm launch b --base busybox --net none -v /proc/sys:/x -- true"),
    ),
    (
        "cannot mount on PATH in the guest",
        Here(
            "mkdir d; holm launch f --base busybox --net none; holm exec f -- touch /x; \
          holm kill f; holm set f mounts+=$PWD/d:/x; holm start f",
        ),
    ),
    ("the start of guest NAME takes more", In("accidents::waits::a_start_that_hangs_is_ended")),
    (
        "cannot start guest NAME: it took",
        In("accidents::waits::a_start_with_a_dead_source_is_ended"),
    ),
    ("waiting for guest NAME", In("accidents::waits::a_command_says_which_one_it_waits_for")),
    ("cannot lock PATH", In("accidents::waits::a_lock_is_not_waited_for_without_end")),
    ("guest NAME ended before it was ready", In("init::broken::an_init_that_dies_at_once")),
    ("guest NAME was not ready within", In("init::broken::an_init_that_never_gets_ready")),
    // Network
    (
        "port 8080/tcp cannot be published: nginx",
        Here(
            "busybox httpd -p 127.0.0.1:8080 -f & until curl -s 127.0.0.1:8080; [ $? != 7 ]; do \
          :; done; holm launch n --base busybox -p 8080:80 -- true; kill $!",
        ),
    ),
    (
        "port 8080/tcp cannot be published: … publishes",
        Here(
            "holm launch one --base busybox -p 8080:80 -- sleep 1000; holm launch two --base \
          busybox -p 8080:80 -- true",
        ),
    ),
    ("no port can be published on ::1", Here("holm create p --base busybox -p [::1]:8080:80")),
    ("port ADDRESS:8080/tcp", Here("holm launch p --base busybox -p 192.0.2.77:8080:80 -- true")),
    (
        "the address ADDRESS is in use",
        Here(
            "holm --root d base import b busybox; \
          holm --root d launch a --base b --set net.address=203.0.113.9 -- sleep 1000; \
          holm launch a --base busybox --set net.address=203.0.113.9 -- true; \
          holm --root d rm --force a",
        ),
    ),
    ("ADDRESS is another guest's", In("net::native::sharing::an_address_is_shared_by_all")),
    (
        "net.address: this host has no address",
        In("net::native::addresses_are_the_hosts_and_one_guests"),
    ),
    (
        "net.interface: this host has no interface",
        In("net::native::changes::an_interface_has_the_addresses_while_the_guest_runs"),
    ),
    (
        "the BPF programs of native guests are those of",
        In("net::native::changes::programs_of_another_build_are_replaced"),
    ),
    ("the uplink, in PATH", In("net::shaping::a_refused_rate_changes_nothing")),
    ("INTERFACE has a root qdisc", In("net::shaping::a_refused_rate_changes_nothing")),
    ("net.reserve: ", In("net::shaping::a_refused_rate_changes_nothing")),
    ("net.lan: INTERFACE: ", In("net::lan::a_lan_that_cannot_be_is_told")),
    (
        "INTERFACE: the BPF program that TASK",
        Here(
            "unshare -n sh -c 'ip link add br0 type bridge; exec strace -fqo log -e inject=bpf:error=EPERM \
          \"$HOLM\" run --base busybox --net none --set net.lan=bridge:br0 -- true'",
        ),
    ),
    ("net.flows: another program listens", In("net::flows::flows_that_cannot_be_are_told")),
    ("net.flows: a guest of", In("net::flows::flows_that_cannot_be_are_told")),
    (
        "what NAME has of the network is",
        Here(
            "mv \"$HOLM_ROOT\"/flows/runs .; mkdir \"$HOLM_ROOT\"/flows/runs; holm launch f --base \
          busybox -- true; holm rm -f f; rmdir \"$HOLM_ROOT\"/flows/runs; mv runs \
          \"$HOLM_ROOT\"/flows/",
        ),
    ),
    (
        "cannot load the program NAME",
        Here(
            "holm create n --base busybox --net native -- true; strace -fqo strace.log -e \
          inject=bpf:error=EPERM:when=44+ \"$HOLM\" start n",
        ),
    ),
    (
        "net.address: ADDRESS is an address",
        In("guest::mistakes::an_address_of_the_host_is_refused"),
    ),
    (
        "cannot run nft",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; PATH=/nowhere holm launch x \
          --base b -- true; holm rm x; holm release",
        ),
    ),
    (
        "nft refused the rules",
        Here(
            "printf '#!/bin/sh\\necho no such feature >&2; exit 1\\n' > nft; chmod 755 nft; export \
          HOLM_ROOT=$PWD/d; holm base import b busybox; PATH=$PWD:$PATH holm launch x --base b \
          -- true; holm rm x; holm release",
        ),
    ),
    (
        "this host lacks capabilities",
        Here("holm create c --base busybox; setpriv --bounding-set -net_admin \"$HOLM\" start c"),
    ),
    (
        "warning: the ruleset had been flushed",
        In("net::rules::ls_and_status_restore_a_flushed_ruleset"),
    ),
    // Limits
    ("memory.limit = …", In("cgroup::limits::memory_below_usage")),
    ("out of memory", In("guest::limits::memory_kills_inside_only")),
    ("holm ls", In("guest::limits::memory_kills_inside_only")),
    ("N processes killed", In("guest::limits::memory_kills_inside_only")),
    ("holm status", In("guest::limits::memory_kills_inside_only")),
    ("holm logs", In("guest::limits::memory_kills_inside_only")),
    (
        "cannot set KEY",
        Here(
            "holm launch k --base busybox --net none --memory 64M -- sleep 1000; unshare -m sh -c \
          'for at in $(findmnt -nt cgroup,cgroup2 -o TARGET); do mount -o remount,bind,ro $at; \
          done; exec \"$HOLM\" set k memory.limit=32M'",
        ),
    ),
    // Stop and remove
    ("guest NAME is running; stop it", Here("holm rm web")),
    ("guest NAME is not running", Here("holm create s --base busybox; holm exec s true")),
    (
        "NAME: did not end in time",
        Here(
            "holm launch s --base busybox --net none -- sh -c 'trap \"\" TERM; touch /trap; \
          while true; do sleep 1; done'; until holm exec s test -e /trap; do :; done; holm \
          stop --timeout 50ms s",
        ),
    ),
    (
        "base BASE is used by guest NAME: remove",
        Here("mkdir d; echo > d/x; holm base import u d; holm create u --base u; holm base rm u"),
    ),
    (
        "base BASE is used by guest NAME, running",
        Here(
            "holm base import v busybox; holm launch v --base v --net none -- sleep 1000; holm \
          set v base=busybox; holm base rm v",
        ),
    ),
    ("cannot move the processes", In("accidents::waits::processes_that_cannot_be_moved_are_told")),
    (
        "cgroup PATH still contains",
        In("accidents::waits::a_process_that_waits_for_its_disk_is_told"),
    ),
    (
        "the run record of guest",
        In("monitor::unreachable::a_guest_with_an_unreadable_run_record_can_be_killed"),
    ),
    // Import
    (
        "import of base NAME: PATH: a device node",
        Here("mkdir d; mknod d/null c 1 3; holm base import d d"),
    ),
    ("import of base NAME: No space", In("bases::imports::disk_full")),
    (
        "import of base NAME: PATH: with it,",
        Unit("memory_is_bounded", include_str!("../../../../crates/holm-image/src/tree.rs")),
    ),
    (
        "base NAME is damaged: object",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; rm d/objects/??/*; holm base ls",
        ),
    ),
    (
        "… has N bytes instead",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; truncate -s 3 d/objects/??/*; \
          holm base ls",
        ),
    ),
    (
        "object …: its content has",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; truncate -s 3 d/objects/??/*; \
          holm fsck",
        ),
    ),
    (
        "object …: its owner or mode",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; chmod 666 d/objects/??/*; \
          holm fsck",
        ),
    ),
    (
        "base NAME is damaged: its image",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; truncate -s 20480 \
          d/bases/b/image; holm base ls",
        ),
    ),
    (
        "import of base NAME: PATH: it has the attribute",
        Here("mkdir d; setfattr -n trusted.overlay.opaque -v y d; holm base import o d"),
    ),
    (
        "import of base NAME: mmdebstrap failed",
        Here("holm base import m debootstrap:nosuch --mirror http://127.0.0.1:9/"),
    ),
    (
        "apt on this host knows no Debian mirror",
        Here(
            "echo \"Dir::Etc \\\"$PWD\\\";\" > apt.conf; APT_CONFIG=$PWD/apt.conf holm base \
          import a debootstrap:trixie",
        ),
    ),
    ("there is no volume NAME", In("volumes::one_in_use_is_not_removed")),
    ("there is already a volume NAME", In("volumes::wrong_names_and_targets")),
    ("volume NAME is in use by", In("volumes::one_in_use_is_not_removed")),
    ("volume NAME is damaged", In("volumes::a_damaged_one_is_named")),
    (
        "volume NAME cannot have a size limit",
        Unit(
            "the_first_id_that_nothing_has",
            include_str!("../../../../crates/holm/src/volume/limit.rs"),
        ),
    ),
    ("volume NAME is in a disk image", In("disk::volumes::limited_in_an_image")),
    ("volume NAME: there is no room", In("disk::volumes::one_with_files_gets_an_image")),
    ("volume NAME: its size limit", In("volumes::a_size_is_said_not_to_be_enforced")),
    ("cannot make volume NAME", In("volumes::links_at_the_target_lead_nowhere_outside")),
    ("a base named NAME exists", Here("mkdir d; echo > d/x; holm base import busybox d")),
    (
        "…, line N: not a digest",
        Here(
            "export HOLM_ROOT=$PWD/d; holm base import b busybox; echo junk >> \
          d/bases/b/objects; holm base ls",
        ),
    ),
];

/// Words that stand for what the message says there, as the page explains; nginx is a program.
const ANY: [&str; 18] = [
    "NAME",
    "INTERFACE",
    "TASK",
    "DIR",
    "PATH",
    "KIND",
    "DISK",
    "ROOT",
    "BASE",
    "SOURCE",
    "ADDRESS",
    "COUNT",
    "PID",
    "KEY",
    "VALUE",
    "N",
    "M",
    "nginx",
];

pub fn every_message_of_troubleshooting_is_said(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    sandbox.holm(&["launch", "web", "--base", "busybox", "--net", "none"]).ok();
    let tests = crate::topics::all();
    let mut unsaid = Vec::new();
    let mut used = vec![false; MESSAGES.len()];
    for message in messages() {
        let entry = MESSAGES.iter().position(|(begin, _)| message.starts_with(begin));
        let entry = entry.unwrap_or_else(|| panic!("where is it said? {message}"));
        used[entry] = true;
        match MESSAGES[entry].1 {
            Here(script) => {
                let outcome = reader.shell(&format!(
                    "mkdir at-{entry}; cd at-{entry}; {{ {}\n}} 2>&1
                    others=$(holm ls -q | grep -vx web); [ -z \"$others\" ] || \
                    holm rm --force $others; [ ! -e d/instance ] || holm --root d release",
                    reader.here(script)
                ));
                if !says(&outcome.stdout, &reader.port_here(message)) {
                    unsaid.push(format!("{message}\n{outcome}"));
                }
            }
            In(name) => assert!(tests.iter().any(|test| test.name.ends_with(name)), "{name}"),
            Unit(name, file) => assert!(file.contains(&format!("fn {name}()")), "{name}"),
        }
    }
    assert!(unsaid.is_empty(), "{}", unsaid.join("\n"));
    let unused: Vec<_> = MESSAGES.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "the page has no such messages: {:?}", unused[0].0.0);
    sandbox.holm(&["rm", "--force", "web"]).ok();
}

/// The first column of the page's tables.
fn messages() -> Vec<&'static str> {
    let (_, page) = DOCUMENTS.iter().find(|(name, _)| *name == "troubleshooting.md").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| inline(row.split(" | ").next().unwrap_or_default())).collect()
}

/// Whether `text` has the message, whatever stands where the page leaves it open.
fn says(text: &str, message: &str) -> bool {
    let mut parts = vec![String::new()];
    for word in message.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let plain = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if ANY.contains(&plain) {
            parts.push(String::new());
        }
        let open = word.ends_with('…');
        let kept = if ANY.contains(&plain) { &word[plain.len()..] } else { word };
        parts.last_mut().expect("one").push_str(kept.trim_end_matches('…'));
        if open {
            parts.push(String::new());
        }
    }
    let mut rest = text;
    parts.iter().all(|part| match rest.split_once(part.trim()) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
