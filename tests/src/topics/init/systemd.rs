//! Guests that run a distribution's systemd.

use rustix::process::Pid;

use crate::command::Outcome;
use crate::guest::{pid, status};
use crate::options::Lane;
use crate::process::kill_hard;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

/// Why some tests usually run on the host only.
const EMULATED: &str = "an emulated machine takes minutes for each systemd guest";

pub const TESTS: &[Test] = &[
    test!(debian_11_is_a_whole_system)
        .bases(&["debian11"])
        .slow_in(&[Lane::Host, Lane::Vm], "its base takes over a minute to make"),
    test!(debian_12_is_a_whole_system).bases(&["debian12"]).slow_in(&[Lane::Vm], EMULATED),
    test!(debian_13_is_a_whole_system).bases(&["debian13"]),
    test!(reboots_and_powers_off_from_inside).bases(&["debian13"]),
    test!(stops_politely).bases(&["debian13"]),
    test!(sandboxes_in_debian_12).bases(&["debian12"]).slow_in(&[Lane::Vm], EMULATED),
    test!(sandboxes_in_debian_13).bases(&["debian13"]),
    test!(guests_keep_their_identity).bases(&["debian13"]),
    test!(its_console_outlives_the_monitor).bases(&["debian13"]).slow_in(&[Lane::Vm], EMULATED),
    test!(mounts_are_locked)
        .bases(&["debian13"])
        .slow_in(&[Lane::Vm], "security has it for a minimal guest"),
];

/// Runs a command in guest `g`.
fn exec(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    sandbox.holm(&[&["exec", "g", "--"], args].concat())
}

fn shell(sandbox: &Sandbox, script: &str) -> Outcome {
    exec(sandbox, &["sh", "-c", script])
}

/// Starts guest `g` and waits until systemd has started everything.
fn launch(sandbox: &Sandbox, base: &str, more: &[&str]) {
    sandbox.holm(&[&["launch", "g", "--base", base, "--init", "system"], more].concat()).ok();
    wait_until_up(sandbox);
}

fn wait_until_up(sandbox: &Sandbox) {
    let state = sandbox.wait_for("systemd is up", || {
        let state = exec(sandbox, &["systemctl", "is-system-running"]).stdout.trim().to_owned();
        ["running", "degraded", "maintenance"].contains(&state.as_str()).then_some(state)
    });
    if state != "running" {
        let failed = exec(sandbox, &["systemctl", "--failed", "--no-pager"]);
        let log = exec(sandbox, &["journalctl", "-b", "-p", "notice", "--no-pager"]);
        panic!("{state}\n{failed}\n{log}");
    }
}

fn debian_11_is_a_whole_system(sandbox: &mut Sandbox) {
    whole_system(sandbox, "debian11");
}

fn debian_12_is_a_whole_system(sandbox: &mut Sandbox) {
    whole_system(sandbox, "debian12");
}

fn debian_13_is_a_whole_system(sandbox: &mut Sandbox) {
    whole_system(sandbox, "debian13");
}

fn whole_system(sandbox: &mut Sandbox, base: &str) {
    launch(sandbox, base, &[]);
    for unit in [
        "systemd-journald",
        "systemd-logind",
        "cron",
        "ssh",
        "dbus",
        "timers.target",
        "multi-user.target",
    ] {
        exec(sandbox, &["systemctl", "is-active", unit]).ok();
    }
    assert_eq!(exec(sandbox, &["systemd-detect-virt"]).ok().stdout.trim(), "container-other");
    assert_eq!(exec(sandbox, &["cat", "/run/host/container-manager"]).ok().stdout, "holm\n");
    // udevd has nothing to do in a guest.
    assert_eq!(
        exec(sandbox, &["systemctl", "is-active", "systemd-udevd"]).stdout.trim(),
        "inactive"
    );
    // A session of a user, with a manager and a runtime directory of its own. su asks PAM, which
    // asks logind.
    shell(sandbox, "useradd -m -s /bin/bash joe").ok();
    let session = exec(
        sandbox,
        &["su", "-", "joe", "-c", "echo $XDG_RUNTIME_DIR; loginctl --no-legend list-sessions"],
    )
    .ok();
    assert!(
        session.stdout.contains("/run/user/1000") && session.stdout.contains("joe"),
        "{session}"
    );
    // Credentials of units are mounts that systemd makes for them.
    let unit = ["systemd-run", "-q", "--wait", "--pipe", "-p", "SetCredential=word:secret"];
    let script = ["sh", "-c", "cat $CREDENTIALS_DIRECTORY/word"];
    assert_eq!(exec(sandbox, &[&unit[..], &script].concat()).ok().stdout, "secret");
    // Whatever the distribution has written into the kernel's settings at boot.
    exec(sandbox, &["su", "-", "joe", "-c", "ping -c1 -w60 169.254.1.1"]).ok();
    let log = exec(sandbox, &["journalctl", "-b", "--no-pager", "-u", "cron"]).ok();
    assert!(log.stdout.contains("Started "), "{log}");
    sandbox.holm(&["stop", "g"]).ok();
    sandbox.holm(&["rm", "g"]).ok();
}

fn boot(sandbox: &Sandbox) -> Option<String> {
    let clock = exec(
        sandbox,
        &["systemctl", "show", "-p", "UserspaceTimestampMonotonic", "-p", "UserspaceTimestamp"],
    );
    clock.status.success().then_some(clock.stdout)
}

fn reboots_and_powers_off_from_inside(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13", &[]);
    shell(sandbox, "touch /root/kept /run/lost").ok();
    for args in [["systemctl", "reboot"].as_slice(), &["shutdown", "-r", "now"]] {
        let before = boot(sandbox).expect("the guest runs");
        exec(sandbox, args);
        sandbox
            .wait_for("the guest has booted again", || boot(sandbox).filter(|now| *now != before));
        wait_until_up(sandbox);
        shell(sandbox, "test -e /root/kept && test ! -e /run/lost").ok();
    }
    exec(sandbox, &["poweroff"]);
    let last = sandbox.holm(&["wait", "g"]);
    assert_eq!(exec(sandbox, &["true"]).code(), 125, "it stays off\n{last}");
    sandbox.holm(&["rm", "g"]).ok();
}

/// The terminal that a new monitor opens is guest root's, as the first was.
fn its_console_outlives_the_monitor(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13", &[]);
    let owner = |sandbox: &Sandbox| exec(sandbox, &["stat", "-c", "%U:%G", "/dev/pts/0"]).stdout;
    let getty = |sandbox: &Sandbox| {
        let unit = ["systemctl", "show", "-p", "ActiveState", "-p", "MainPID", "console-getty"];
        exec(sandbox, &unit).ok().stdout
    };
    let (first_owner, first_getty) = (owner(sandbox), getty(sandbox));
    assert!(first_getty.contains("ActiveState=active"), "{first_getty}");
    let monitor = pid(&status(sandbox, "g"), "monitor_pid");
    // A program that does not close the terminal at once when it hangs up.
    let slow = "setsid sh -c 'exec sleep 0.5' </dev/pts/0 >/dev/null 2>&1 &";
    exec(sandbox, &["sh", "-c", slow]).ok();
    kill_hard(sandbox, Pid::from_raw(monitor).expect("a process id"));
    sandbox.wait_for("another monitor", || {
        (pid(&status(sandbox, "g"), "monitor_pid") != monitor).then_some(())
    });
    assert_eq!(owner(sandbox), first_owner);
    let seen = |sandbox: &Sandbox| sandbox.holm(&["logs", "g"]).ok().stdout;
    let before = seen(sandbox).len();
    sandbox.wait_for("a getty on the new terminal", || {
        let now = getty(sandbox);
        let again = now.contains("ActiveState=active") && now != first_getty;
        (again && seen(sandbox).get(before..)?.contains("login:")).then_some(())
    });
    sandbox.holm(&["kill", "g"]).ok();
    sandbox.holm(&["rm", "g"]).ok();
}

fn stops_politely(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13", &[]);
    shell(sandbox, "printf '[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStop=/usr/bin/touch /root/was-asked\\n' \
        > /etc/systemd/system/last.service && systemctl start last").ok();
    sandbox.holm(&["stop", "g"]).ok();
    sandbox.holm(&["start", "g"]).ok();
    exec(sandbox, &["test", "-e", "/root/was-asked"]).ok();
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

/// What a unit may ask for, a command in it, and what its output must (`+`) or must not (`-`) hold.
const SANDBOXES: &[(&str, &str, &str)] = &[
    ("ProtectSystem=strict", "touch /etc/x", "+Read-only"),
    ("ProtectHome=yes", "touch /root/x && echo wrote", "-wrote"),
    ("ProtectHome=tmpfs", "ls /root | wc -l", "+0"),
    ("PrivateTmp=yes", "ls /tmp | wc -l", "+0"),
    (
        "PrivateDevices=yes",
        "ls /dev; echo x > /dev/null && head -c1 /dev/urandom | wc -c",
        "+urandom",
    ),
    ("DynamicUser=yes StateDirectory=foo", "touch /var/lib/foo/a && echo ok", "+ok"),
    ("ProtectKernelTunables=yes", "echo a > /proc/sys/kernel/hostname && echo wrote", "-wrote"),
    ("ProtectKernelModules=yes", "echo ran", "+ran"),
    ("ProtectKernelLogs=yes", "echo ran", "+ran"),
    ("ProtectControlGroups=yes", "mkdir /sys/fs/cgroup/zz && echo made", "-made"),
    ("ProtectProc=invisible User=nobody", "ls -d /proc/1", "+No such file"),
    ("ProcSubset=pid", "ls /proc/meminfo", "+No such file"),
    ("ProtectHostname=yes", "echo ran", "+ran"),
    ("ProtectClock=yes", "echo ran", "+ran"),
    ("PrivateNetwork=yes", "cat /proc/net/dev", "-eth0"),
    ("PrivateIPC=yes", "echo ran", "+ran"),
    ("PrivateUsers=yes", "id -u", "+0"),
    ("PrivateMounts=yes", "mount -t tmpfs x /mnt && echo mounted", "+mounted"),
    ("InaccessiblePaths=/etc/ssh", "ls /etc/ssh | wc -l", "+0"),
    ("ReadOnlyPaths=/var", "touch /var/x", "+Read-only"),
    (
        "ProtectSystem=strict ReadWritePaths=/opt",
        "touch /etc/x && exit; touch /opt/x && echo there only",
        "+there only",
    ),
    ("BindPaths=/usr:/mnt", "ls /mnt", "+bin"),
    (
        "RootDirectory=/opt/root BindReadOnlyPaths=/usr",
        "test -e /opt || touch /usr/x",
        "+Read-only",
    ),
    (
        "RootDirectory=/opt/root BindReadOnlyPaths=/usr MountAPIVFS=yes",
        "echo x > /dev/null && test -d /sys/class/net && cat /proc/1/comm",
        "+systemd",
    ),
    (
        "RootDirectory=/opt/root BindReadOnlyPaths=/usr MountAPIVFS=yes PrivateDevices=yes",
        "echo x > /dev/null && test ! -e /dev/.holm && cat /proc/1/comm",
        "+systemd",
    ),
    ("TemporaryFileSystem=/var", "ls /var | wc -l", "+0"),
    (
        "ProtectSystem=strict ProtectHome=yes PrivateTmp=yes PrivateDevices=yes ProtectKernelTunables=yes \
      ProtectControlGroups=yes RestrictNamespaces=yes NoNewPrivileges=yes MemoryDenyWriteExecute=yes LockPersonality=yes \
      RestrictSUIDSGID=yes SystemCallFilter=@system-service",
        "echo ran",
        "+ran",
    ),
    ("MemoryMax=64M", "cat /proc/self/cgroup", "+system.slice"),
    ("CPUQuota=20%", "echo ran", "+ran"),
    ("DevicePolicy=closed", "echo ran", "+ran"),
    ("IPAddressDeny=any", "echo ran", "+ran"),
];

fn sandboxes_in_debian_12(sandbox: &mut Sandbox) {
    sandboxes(sandbox, "debian12");
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn sandboxes_in_debian_13(sandbox: &mut Sandbox) {
    sandboxes(sandbox, "debian13");
    let own = unit(sandbox, "PrivatePIDs=yes", "ls -d /proc/[0-9]* | wc -l");
    assert!(own.stdout.trim().parse().is_ok_and(|count: u32| count < 6), "{own}");
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn sandboxes(sandbox: &mut Sandbox, base: &str) {
    launch(sandbox, base, &[]);
    let root = "cd /opt && mkdir -p root && cd root && mkdir usr proc sys dev run tmp etc && \
                for link in bin lib lib64 sbin; do ln -s usr/$link; done";
    shell(sandbox, root).ok();
    let mut wrong = Vec::new();
    for (properties, script, expected) in SANDBOXES {
        let outcome = unit(sandbox, properties, script);
        let (sign, text) = expected.split_at(1);
        if outcome.stdout.contains(text) != (sign == "+") {
            wrong.push(format!("{properties}: {expected}\n{outcome}"));
        }
    }
    // Containers in the guest mount a proc of their own.
    for flags in ["-pf", "-Urpf"] {
        let script = format!("unshare {flags} --mount-proc ls -d /proc/1");
        let outcome = shell(sandbox, &script);
        if outcome.stdout != "/proc/1\n" {
            wrong.push(outcome.to_string());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs `script` in a transient unit with `properties`; both outputs come on stdout.
fn unit(sandbox: &Sandbox, properties: &str, script: &str) -> Outcome {
    let script = format!("{script}; true");
    let mut args = vec!["systemd-run", "--quiet", "--wait", "--collect", "--pipe"];
    for property in properties.split_whitespace() {
        args.extend(["-p", property]);
    }
    let inner = format!("({script}) 2>&1");
    args.extend(["sh", "-c", &inner]);
    exec(sandbox, &args)
}

fn guests_keep_their_identity(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13", &["--hostname", "web"]);
    let identity =
        "hostname; cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub; getent hosts web";
    sandbox.wait_for("the guest has keys of its own", || {
        shell(sandbox, "systemctl is-active ssh && test ! -e /etc/ssh/.holm-make-host-keys")
            .status
            .success()
            .then_some(())
    });
    let before = shell(sandbox, identity).ok().stdout;
    assert!(before.starts_with("web\n"), "{before}");
    sandbox.holm(&["restart", "g"]).ok();
    wait_until_up(sandbox);
    assert_eq!(shell(sandbox, identity).ok().stdout, before);
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

fn mounts_are_locked(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    launch(sandbox, "debian13", &["-v", &mount]);
    let text = exec(sandbox, &["cat", "/proc/self/mountinfo"]).ok().stdout;
    // What systemd itself mounted is the guest's own to unmount.
    let holms = |point: &str| {
        ["/", "/run", "/probe"].contains(&point)
            || ["/dev", "/proc", "/sys"]
                .iter()
                .any(|top| point == *top || point.starts_with(&format!("{top}/")))
    };
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    let skip: Vec<&str> = points.filter(|point| !holms(point)).collect();
    // systemd mounts credentials of a unit whenever that starts.
    let probe = ["/probe/holm-probe", "locks", "/run/credentials"];
    exec(sandbox, &[&probe[..], &skip[..]].concat()).ok();
    exec(sandbox, &["/probe/holm-probe", "escape"]).ok();
    sandbox.holm(&["rm", "--force", "g"]).ok();
}
