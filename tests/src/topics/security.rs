//! What guest root can do: looked at from inside, by the probe.

use crate::command::Outcome;
use crate::guest::{exec, idle, launch_idle, remove};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use rustix::fs::{CWD, FileType, Mode, inotify, makedev, mknodat};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(mounts_are_locked).bases(&["busybox"]),
    test!(mounts_are_locked_in_a_guest_that_stays).bases(&["busybox"]),
    test!(nothing_leads_out).bases(&["busybox"]),
    test!(nothing_leads_out_of_exec).bases(&["busybox"]),
    test!(a_hostile_passwd_does_not_mislead_exec).bases(&["busybox"]),
    test!(calls_are_refused).bases(&["busybox"]),
    test!(capabilities_are_bounded).bases(&["busybox"]),
    test!(clock_and_log_are_the_hosts).bases(&["busybox"]),
    test!(dev_and_ids_and_net_are_its_own).bases(&["busybox"]),
    test!(resource_use_is_bounded).bases(&["busybox"]),
    test!(inotify_instances_are_per_guest).bases(&["busybox"]),
    test!(init_exposes_nothing_of_the_host).bases(&["busybox"]),
    test!(device_nodes_in_the_root_are_dead).bases(&["busybox"]),
    test!(sys_cannot_be_written).bases(&["busybox"]),
    test!(hierarchies_with_a_limit_show_the_guest_only).bases(&["busybox"]),
    test!(a_link_at_a_mountpoint_is_refused).bases(&["busybox"]),
    test!(a_32_bit_guest_has_a_32_bit_machine).bases(&["busybox"]),
];

/// Runs the probe in an ephemeral guest, `settings` on its command line.
fn probe(sandbox: &Sandbox, settings: &[&str], command: &[&str]) -> Outcome {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let mut args = vec!["run", "--base", "busybox", "--net", "none", "-v", &mount];
    args.extend(settings);
    args.extend(["--", "/probe/holm-probe"]);
    args.extend(command);
    sandbox.holm(&args)
}

fn mounts_are_locked(sandbox: &mut Sandbox) {
    let outcome = probe(sandbox, &[], &["locks"]).ok();
    // The probe must have tried the bind mount itself.
    assert!(outcome.stdout.contains("/probe: clear ro by remount"), "{outcome}");
}

fn mounts_are_locked_in_a_guest_that_stays(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    sandbox
        .holm(&["launch", "g", "--base", "busybox", "-v", &mount, "--", "/bin/sleep", "1000"])
        .ok();
    sandbox.holm(&["exec", "g", "/probe/holm-probe", "locks"]).ok();
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

/// A home directory may name a descriptor of the joining process (CVE-2024-21626), and /etc/passwd
/// may be a FIFO without a writer.
fn a_hostile_passwd_does_not_mislead_exec(sandbox: &mut Sandbox) {
    sandbox
        .holm(&["launch", "g", "--base", "busybox", "--net", "none", "--", "/bin/sleep", "1000"])
        .ok();
    for number in 3..16 {
        let entry = format!("echo root:x:0:0::/proc/self/fd/{number}:/bin/sh > /etc/passwd");
        sandbox.holm(&["exec", "g", "--cwd", "/", "--", "/bin/sh", "-c", &entry]).ok();
        let outcome = sandbox.holm(&["exec", "g", "--", "readlink", "/proc/self/cwd"]).ok();
        assert_eq!(outcome.stdout, "/\n", "descriptor {number}: {outcome}");
    }
    let fifo = "rm /etc/passwd && mkfifo /etc/passwd";
    sandbox.holm(&["exec", "g", "--", "/bin/sh", "-c", fifo]).ok();
    sandbox.holm(&["exec", "g", "--", "/bin/true"]).ok();
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn nothing_leads_out(sandbox: &mut Sandbox) {
    probe(sandbox, &[], &["escape"]).ok();
}

fn nothing_leads_out_of_exec(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    sandbox
        .holm(&["launch", "g", "--base", "busybox", "-v", &mount, "--", "/bin/sleep", "1000"])
        .ok();
    for args in [["escape"].as_slice(), &["caps"], &["seccomp"], &["seccomp", "--32"], &["ids"]] {
        sandbox.holm(&[&["exec", "g", "/probe/holm-probe"], args].concat()).ok();
    }
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn calls_are_refused(sandbox: &mut Sandbox) {
    probe(sandbox, &[], &["seccomp"]).ok();
    probe(sandbox, &[], &["seccomp", "--32"]).ok();
}

fn capabilities_are_bounded(sandbox: &mut Sandbox) {
    probe(sandbox, &[], &["caps"]).ok();
    // CAP_NET_RAW is number 13 (include/uapi/linux/capability.h).
    let config = holm::config::Security::default();
    let less = holm::security::bounding_set(&config).expect("the default") & !(1 << 13);
    probe(sandbox, &["--set", "security.caps+=-CAP_NET_RAW"], &["caps", &format!("{less:x}")]).ok();
    probe(sandbox, &["--set", "security.caps+=CAP_SYS_TIME"], &["caps"])
        .refused(&["no guest may have CAP_SYS_TIME"]);
}

fn clock_and_log_are_the_hosts(sandbox: &mut Sandbox) {
    probe(sandbox, &[], &["clock"]).ok();
    probe(sandbox, &[], &["dmesg"]).ok();
}

fn dev_and_ids_and_net_are_its_own(sandbox: &mut Sandbox) {
    probe(sandbox, &[], &["dev"]).ok();
    probe(sandbox, &[], &["ids"]).ok();
    probe(sandbox, &[], &["net", "lo"]).ok();
}

fn resource_use_is_bounded(sandbox: &mut Sandbox) {
    let hog = probe(sandbox, &["--memory", "64M"], &["memory", "268435456"]);
    assert_eq!(hog.code(), 137, "killed for its memory\n{hog}");
    let bomb = probe(sandbox, &["--set", "pids.limit=20"], &["forks", "100"]).ok();
    let made: u32 = first_number(&bomb.stdout);
    assert!((5..20).contains(&made), "{bomb}");
}

/// The kernel charges a user namespace's inotify instances to its maker too: guests made by one uid
/// would share what one may have, and what root has left for the host's own programs. A systemd
/// guest has seven: what these have, of the kernel's usual 128 each, is a hundred guests' worth.
fn inotify_instances_are_per_guest(sandbox: &mut Sandbox) {
    const GUESTS: usize = 6;
    const MOST: &str = "/proc/sys/fs/inotify/max_user_instances";
    let most = first_number(&std::fs::read_to_string(MOST).expect("a number"));
    if most > 512 {
        skip("fs.inotify.max_user_instances is raised here: nothing would run out");
    }
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let count = most.to_string();
    let mut guests: Vec<_> = (0..GUESTS)
        .map(|_| {
            let mut command = sandbox.command();
            command.args(["run", "--base", "busybox", "--net", "none", "-v", &mount, "--"]);
            command.args(["/probe/holm-probe", "inotify", &count]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("holm run")
        })
        .collect();
    // Each says how many it has, and keeps them until its input ends.
    let counts: Vec<u32> = guests
        .iter_mut()
        .map(|guest| {
            let mut line = String::new();
            let output = guest.stdout.take().expect("piped");
            BufReader::new(output).read_line(&mut line).expect("a line");
            first_number(&line)
        })
        .collect();
    let roots = inotify::init(inotify::CreateFlags::CLOEXEC);
    for mut guest in guests {
        drop(guest.stdin.take());
        guest.wait().expect("its end");
    }
    assert_eq!(counts, [most; GUESTS]);
    roots.expect("root on the host still has instances of its own");
}

fn a_32_bit_guest_has_a_32_bit_machine(sandbox: &mut Sandbox) {
    let machine = |arch: &str| {
        let arch = format!("arch={arch}");
        let args = ["run", "--base", "busybox", "--net", "none", "--set", &arch, "--"];
        sandbox.holm(&[&args[..], &["/bin/uname", "-m"]].concat()).ok().stdout
    };
    assert_eq!(machine("i686"), "i686\n");
    assert_eq!(machine("native"), "x86_64\n");
}

fn first_number(text: &str) -> u32 {
    text.split(' ').next().and_then(|word| word.trim().parse().ok()).unwrap_or(0)
}

/// In an ephemeral guest process 1 is a copy of the launcher: whose command line, memory and
/// descriptors are none of the guest's business, in its own and in a user namespace below.
fn init_exposes_nothing_of_the_host(sandbox: &mut Sandbox) {
    let look = "tr '\\0' ' ' </proc/1/cmdline; echo; cat /proc/1/comm
        for secret in environ maps mem auxv exe fd/1 map_files/; do
            cat /proc/1/$secret >/dev/null && echo shows $secret
            unshare -U -r cat /proc/1/$secret >/dev/null && echo shows $secret to users
        done; ls /proc/1/fd; true";
    let args = ["run", "--base", "busybox", "--net", "none", "--env", "WORD=secret"];
    let outcome = sandbox.holm(&[&args[..], &["--", "/bin/sh", "-c", look]].concat()).ok();
    let lines: Vec<&str> = outcome.stdout.lines().map(str::trim_end).collect();
    assert_eq!(lines, ["init", "init"], "{outcome}");
    assert_eq!(outcome.stderr.matches("denied").count(), 15, "{outcome}");
}

/// A device node that somehow came into the private layer (a restored backup, an older import)
/// opens no device of the host. Even /dev/null, which would do no harm, shows it.
fn device_nodes_in_the_root_are_dead(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let node = sandbox.root().join("guests/box/disk/upper/null");
    mknodat(CWD, &node, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3))
        .expect("a device node");
    rustix::fs::chmod(&node, Mode::from_raw_mode(0o666)).expect("its mode");
    sandbox.holm(&["start", "box"]).ok();
    let listed = exec(sandbox, "box", "ls -l /null").ok().stdout;
    assert!(listed.starts_with("crw-rw-rw-"), "the guest sees it: {listed}");
    let opened = exec(sandbox, "box", "echo > /null");
    assert!(!opened.status.success() && opened.stderr.contains("Permission denied"), "{opened}");
    remove(sandbox, "box");
}

/// A guest that could choose where its /proc goes could uncover what is masked.
fn a_link_at_a_mountpoint_is_refused(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    for name in ["proc", "dev", "run", "sys"] {
        let place = sandbox.root().join("guests/box/disk/upper").join(name);
        let _ = std::fs::remove_dir(&place);
        std::os::unix::fs::symlink("/etc", &place).expect("a link in the private layer");
        let what = format!("/{name}");
        sandbox.holm(&["start", "box"]).refused(&[&what, "it is a symbolic link"]);
        std::fs::remove_file(&place).expect("the link goes");
    }
    sandbox.holm(&["start", "box"]).ok();
    remove(sandbox, "box");
}

/// Guest root may own files of its interfaces below /sys: nothing but the read-only mount keeps it
/// from writing them. A distribution's init takes a writable /sys for a whole machine.
fn sys_cannot_be_written(sandbox: &mut Sandbox) {
    let script = "echo x > /sys/class/net/lo/ifalias";
    for settings in [&["--net", "none"][..], &["--net", "private"]] {
        let run = ["run", "--base", "busybox"];
        let written = sandbox.holm(&[&run, settings, &["--", "/bin/sh", "-c", script]].concat());
        assert_eq!(written.code(), 1, "{written}");
        assert!(written.stderr.contains("Read-only file system"), "{written}");
    }
}

/// [S8] On a hybrid host guest root can mount the v1 hierarchies. Those that carry a limit of the
/// guest begin at its own cgroup; of the others it sees what the caller's cgroup has below it
/// (docs/decisions/0022). On pure v2 there is none to mount.
fn hierarchies_with_a_limit_show_the_guest_only(sandbox: &mut Sandbox) {
    // The host's tree has something to show.
    launch_idle(sandbox, "neighbour", &["--memory", "128M", "--set", "pids.limit=300"]);
    let script = "for c in memory pids cpu; do
            mkdir /tmp/$c && mount -t cgroup -o $c none /tmp/$c 2>/dev/null || continue
            cat /tmp/$c/memory.limit_in_bytes /tmp/$c/pids.max /tmp/$c/cpu.shares 2>/dev/null
            find /tmp/$c -mindepth 1 -type d
        done";
    let run = ["run", "--base", "busybox", "--net", "none", "--memory", "64M"];
    let limits = ["--set", "pids.limit=77", "--set", "cpu.share=200", "--", "sh", "-c", script];
    let seen = sandbox.holm(&[&run[..], &limits].concat()).ok().stdout;
    let hybrid = std::path::Path::new("/sys/fs/cgroup/memory").exists();
    assert_eq!(seen, if hybrid { "67108864\n77\n2048\n" } else { "" });
    remove(sandbox, "neighbour");
}
