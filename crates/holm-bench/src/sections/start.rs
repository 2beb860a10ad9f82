//! `/bin/true` in a guest of its own: the whole process, from the fork until it was waited for.

use crate::peers;
use crate::rounds::{Case, Outcome, run as measure, table};
use crate::sections::guests::Sleepers;
use crate::stage::Stage;

const TRUE: [&str; 1] = ["/bin/true"];
const NO_NETWORK: [&str; 2] = ["--set", "net.mode=none"];
const PRIVATE: [&str; 2] = ["--set", "net.mode=private"];

const ABOUT: &str = "\
`/bin/true` (a static busybox), all namespaces, one command from the fork until it was waited for.
bubblewrap makes no cgroup, no id range, no overlay and no seccomp filter; LXC, runc and
systemd-nspawn have id ranges of their own. LXC writes its id maps itself, also where newuidmap is
installed, which accepts only ranges that /etc/subuid gives to root. The floor is a C program that
makes the namespaces, an overlay root and /proc, and nothing else. The prototype of Holm's way of
starting took 1.07 to 1.2 of bubblewrap's time on this kind of machine.\n\n";

const LIMITED: &str = "
With a limit on memory (256 MiB) and on CPU time (1 CPU), and with the private network:\n\n";

const BESIDE: &str = "
While another guest of the same base runs:\n\n";

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let mut text = ABOUT.to_owned();
    text += &table(&measure(&plain(stage)?, n), "holm run");
    text += LIMITED;
    text += &table(&measure(&limits_and_network(stage)?, n), "holm run");
    text += BESIDE;
    text += &table(&beside(stage, n)?, "holm run");
    peers::clean_up(stage);
    Ok(text)
}

/// All guests of a base have one mount of its image, which the first start makes.
fn beside(stage: &Stage, n: usize) -> Result<Vec<Outcome>, String> {
    let _guests = Sleepers::one_of_each(stage)?;
    let mut cases = holm(stage, "holm run", &NO_NETWORK);
    cases.push(Case::new("bwrap --unshare-all", peers::bwrap(stage, &TRUE)));
    Ok(measure(&cases, n))
}

/// `holm run` with some settings, in each build.
fn holm(stage: &Stage, name: &str, settings: &[&str]) -> Vec<Case> {
    let args = [&["run", "--base", "minimal"], settings, &["--", "/bin/true"]].concat();
    stage.holms.iter().map(|holm| Case::of(holm, name, holm.argv(&args))).collect()
}

fn plain(stage: &Stage) -> Result<Vec<Case>, String> {
    // Only the system calls that any such program needs: the lower bound that the kernel sets.
    let floor = stage
        .compile("floor", include_str!("../../floor.c"))
        .unwrap_or_else(|_| "/nonexistent/floor".to_owned());
    let minimal = stage.path("minimal");
    let mut cases = holm(stage, "holm run", &NO_NETWORK);
    cases.extend([
        Case::new("bwrap --unshare-all", peers::bwrap(stage, &TRUE)),
        peers::lxc_execute(stage, "lxc-execute", "plain", false, &TRUE)?,
        Case::new("runc run", peers::runc(stage, "plain", &TRUE)?),
        Case::new("systemd-nspawn", peers::nspawn(stage, "minimal-shifted", &TRUE)),
        Case::new("fork and exec alone", [format!("{minimal}/bin/true")]),
        Case::new("kernel floor", [floor.as_str(), &minimal, "/bin/true"]),
        Case::new(
            "kernel floor, with a network namespace",
            [floor.as_str(), &minimal, "net", "/bin/true"],
        ),
    ]);
    Ok(cases)
}

fn limits_and_network(stage: &Stage) -> Result<Vec<Case>, String> {
    let limits = peers::holm_limits();
    let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
    let mut cases = holm(stage, "holm run", &NO_NETWORK);
    cases.extend(holm(stage, "holm run, limits", &[&NO_NETWORK[..], &limits].concat()));
    cases.push(peers::lxc_execute(stage, "lxc-execute, limits", "limits", true, &TRUE)?);
    cases.extend(holm(stage, "holm run, private network", &PRIVATE));
    Ok(cases)
}
