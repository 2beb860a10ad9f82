//! `net.names`: guests resolve one another's names.

use std::path::PathBuf;

use super::topology::Host;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(guests_resolve_one_anothers_names).bases(&["busybox"]),
    test!(a_killed_start_or_end_leaves_no_name).bases(&["busybox"]),
    test!(names_that_cannot_resolve_are_refused).bases(&["busybox"]),
];

const NAMES: &str = "net.names=true";
const SLEEP: [&str; 2] = ["sleep", "100000"];
/// A page that tells whose it is. Without the file, glibc asks name servers first.
const SERVE: [&str; 3] = [
    "sh",
    "-c",
    "echo 'hosts: files' > /etc/nsswitch.conf; hostname > /tmp/index.html; \
     exec httpd -f -p 80 -h /tmp",
];

impl Host<'_> {
    /// The page that a guest finds by a name; empty if it finds none.
    fn page(&self, of: &str, name: &str) -> String {
        const GET: &str = "printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 20 \"$0\" 80 | tail -n 1";
        let page = self.holm(&["exec", of, "--", "sh", "-c", GET, name]);
        page.stdout.trim().to_owned()
    }

    /// /etc/hosts as a guest sees it.
    fn hosts_in(&self, name: &str) -> String {
        self.holm(&["exec", name, "--", "cat", "/etc/hosts"]).ok().stdout
    }
}

fn file(sandbox: &Sandbox) -> PathBuf {
    format!("/run/holm/{}/hosts", sandbox.instance().expect("an instance")).into()
}

fn guests_resolve_one_anothers_names(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.run("one", &[NAMES], &SERVE).ok();
    // It does not take part: it has its own file, and the others do not know it.
    host.run("quiet", &["env.A=b"], &SERVE).ok();
    let own = host.hosts_in("quiet");
    let native = ["net.mode=native", "net.address=192.0.2.10", NAMES];
    host.run("two", &[NAMES], &SERVE).ok();
    // While the one that asks runs since before.
    let page = sandbox.wait_for("its server", || {
        let page = host.page("one", "two.holm");
        (!page.is_empty()).then_some(page)
    });
    assert_eq!(page, "two");
    assert_eq!(host.page("one", "two"), "two");
    host.run("native", &native, &SERVE).ok();
    let page = sandbox.wait_for("its server", || {
        let page = host.page("one", "native.holm");
        (!page.is_empty()).then_some(page)
    });
    assert_eq!((page.as_str(), host.page("native", "one.holm").as_str()), ("native", "one"));
    assert_eq!(host.page("two", "two.holm"), "two");
    let text = host.hosts_in("two");
    assert_eq!(host.hosts_in("native"), text);
    assert!(text.starts_with("127.0.0.1 localhost\n") && text.contains("two.holm"), "{text}");
    assert!(text.contains("\n192.0.2.10 native.holm native\n"), "{text}");
    assert!(text.contains(".holm one\nfd00:"), "IPv6 too: {text}");
    assert!(!text.contains("quiet") && !own.contains("holm"), "{text}{own}");
    // Guest root can neither change it nor uncover its own.
    let change = "echo 192.0.2.9 one.holm >> /etc/hosts || umount /etc/hosts || rm /etc/hosts";
    assert_ne!(host.holm(&["exec", "two", "--", "sh", "-c", change]).code(), 0);
    assert_eq!(host.hosts_in("one"), text);
    // An address that it has only since now.
    host.topology.host.sh("ip addr add 192.0.2.11/32 dev up0");
    host.holm(&["set", "native", "net.address=192.0.2.10,192.0.2.11"]).ok();
    let more = host.hosts_in("one");
    assert!(more.contains("192.0.2.11 native.holm native\n"), "{more}");
    host.holm(&["set", "native", "net.address=192.0.2.10"]).ok();
    let lines = |text: &str| text.lines().filter(|it| !it.starts_with('#')).count();
    assert_eq!(lines(&host.hosts_in("one")), lines(&text));
    let text = host.hosts_in("one");
    // They are known while they run.
    host.holm(&["kill", "two"]).ok();
    let left = host.hosts_in("one");
    assert!(!left.contains("two") && left.contains("native.holm"), "{left}");
    host.holm(&["start", "two"]).ok();
    assert_eq!(host.hosts_in("one"), text, "it takes the room that it had");
    host.holm(&["rm", "--force", "one", "two", "native", "quiet"]).ok();
    assert!(!file(sandbox).exists(), "the file stays without guests");
}

fn a_killed_start_or_end_leaves_no_name(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.run("one", &[NAMES], &SLEEP).ok();
    host.run("two", &[NAMES], &SLEEP).ok();
    let both = host.hosts_in("one");
    host.holm(&["kill", "two"]).ok();
    for step in ["names", "net-admit", "pivot"] {
        host.topology.kill_at(sandbox, step, &["start", "two"]);
        sandbox.wait_for("its end", || {
            let found = host.holm(&["status", "two", "--json"]).ok().json();
            (found["state"] == "stopped").then_some(())
        });
        // A monitor that was not killed cleans up after its last process.
        sandbox.wait_for(&format!("no name after {step}"), || {
            (!host.hosts_in("one").contains("two")).then_some(())
        });
        host.holm(&["start", "two"]).ok();
        assert_eq!(host.hosts_in("one"), both, "{step}");
        host.holm(&["kill", "two"]).ok();
    }
    // Other addresses than those of before.
    host.holm(&["set", "two", "net.address=198.51.100.7"]).ok();
    host.holm(&["start", "two"]).ok();
    let moved = host.hosts_in("one");
    assert!(moved.contains("198.51.100.7 two.holm two"), "{moved}");
    let before = moved.lines().find(|line| line.starts_with("10.") && line.contains("two"));
    assert_eq!(before, None);
    host.holm(&["rm", "--force", "one", "two"]).ok();
}

fn names_that_cannot_resolve_are_refused(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let mount = format!("mounts={}:/etc/hosts", sandbox.probe_directory().display());
    for (settings, why) in [
        (&["net.mode=none", NAMES][..], "no address that Holm knows"),
        (&["net.mode=host", NAMES], "no address that Holm knows"),
        (&["net.mode=native", NAMES], "no address that Holm knows"),
        (&["net.peers=false", NAMES], "net.peers = false"),
        (&[&mount, NAMES], "mounts has an /etc/hosts"),
    ] {
        host.run("none", settings, &SLEEP).rejected(&["net.names", why]);
    }
}
