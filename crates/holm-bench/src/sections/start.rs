//! `/bin/true` in a guest of its own: whole process, from fork to reaped.

use crate::peers;
use crate::race::{Contestant, interleaved, table};
use crate::stage::Stage;

const TRUE: [&str; 1] = ["/bin/true"];

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut text = String::from(
        "`/bin/true` (a static busybox), all namespaces, one command from fork to reaped. bubblewrap makes no cgroup, no id \
         range, no overlay and no seccomp filter; LXC, runc and systemd-nspawn have id ranges of their own. The floor is a C \
         program that makes the namespaces, an overlay root and /proc, and nothing else. The prototype of Holm's way of \
         starting took 1.07 to 1.2 of bubblewrap's time on this kind of machine.\n\n",
    );
    let holm = |name: &str, more: &[String]| {
        let mut argv = stage.holm(&["run", "--base", "minimal"]);
        argv.extend_from_slice(more);
        argv.extend(["--", "/bin/true"].map(str::to_owned));
        Contestant::new(name, argv)
    };
    let set = |value: &str| vec!["--set".to_owned(), value.to_owned()];

    let floor = stage.floor().unwrap_or_else(|_| "/nonexistent/floor".to_owned());
    let minimal = stage.path("minimal");
    let plain = [
        holm("holm run", &set("net.mode=none")),
        Contestant::new("bwrap --unshare-all", peers::bwrap(stage, &TRUE)),
        Contestant::new("lxc-execute", peers::lxc_execute(stage, "plain", false, &TRUE)?),
        Contestant::new("runc run", peers::runc(stage, "plain", &TRUE)?),
        Contestant::new("systemd-nspawn", peers::nspawn(stage, "minimal-shifted", &TRUE)),
        Contestant::new("fork and exec alone", [format!("{minimal}/bin/true")]),
        Contestant::new("kernel floor", [floor.as_str(), &minimal, "/bin/true"]),
        Contestant::new(
            "kernel floor, with a network namespace",
            [floor.as_str(), &minimal, "net", "/bin/true"],
        ),
    ];
    text += &table(&interleaved(&plain, n), "holm run");

    text += "\nWith a limit on memory (256 MiB) and on CPU time (1 CPU), and with the private network:\n\n";
    let limits = peers::holm_limits();
    let more = [
        holm("holm run", &set("net.mode=none")),
        holm("holm run, limits", &[&set("net.mode=none")[..], &limits].concat()),
        Contestant::new("lxc-execute, limits", peers::lxc_execute(stage, "limits", true, &TRUE)?),
        holm("holm run, private network", &set("net.mode=private")),
    ];
    text += &table(&interleaved(&more, n), "holm run");
    peers::clean_up(stage);
    Ok(text)
}
