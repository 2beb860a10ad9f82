//! What each kind of network costs, between two network namespaces with a veth pair as the wire.

pub mod apache;
pub mod datagrams;
mod guests;
pub mod hooks;
pub mod modes;
pub mod rates;
mod wire;

use std::fs;

use wire::{BRIDGE, BRIDGED, NATIVE, OUTSIDE, Wire};

use crate::build::SLEEP;
use crate::peers::{self, Bridge, Lxc};
use crate::rounds::{Case, Outcome, Row, table, take_turns};
use crate::stage::Stage;

/// The row that the others are compared with.
const HOST: &str = "host";
/// Rounds that are not counted.
const WARM_UP: usize = 1;

/// A load: its kind for the program, how much of it, and what that is.
type Load = (&'static str, usize, &'static str);
const LOADS: [Load; 5] = [
    ("stream", 30_000, "One TCP connection that sends 1.83 GiB"),
    ("echo", 20_000, "20000 times one byte and its echo, by one TCP connection"),
    ("connect", 5_000, "5000 times a TCP connection, a request of 64 bytes and an answer of 1024"),
    ("udp-64", 200_000, "200000 datagrams of 64 bytes, each sent with its destination"),
    ("udp-1472", 200_000, "200000 datagrams of 1472 bytes"),
];
const SHAPED: Load = ("stream", 4_000, "One TCP connection that sends 250 MiB, 1 Gbit/s at most");

/// The guests that have the client. The first has the host's network: what it costs is not the
/// network's.
const HOST_NET_GUEST: &str = "bench-host";
const NATIVE_GUEST: &str = "bench-native";
const PRIVATE_GUEST: &str = "bench-private";

/// Where a client runs.
enum Place {
    Host,
    Guest(&'static str),
    Lxc,
    Nspawn,
}

/// The hosts, each with a wire of its own: one whose connections nobody tracks, one with the rules
/// of private guests, and one with the bridge of other systems.
const PLAIN: usize = 0;
const ROUTED: usize = 1;
const BRIDGED_BY: usize = 2;

const PLACES: [(&str, usize, Place); 7] = [
    (HOST, PLAIN, Place::Host),
    ("host, again", PLAIN, Place::Host),
    ("guest with the host's network", PLAIN, Place::Guest(HOST_NET_GUEST)),
    ("native", PLAIN, Place::Guest(NATIVE_GUEST)),
    ("private", ROUTED, Place::Guest(PRIVATE_GUEST)),
    ("LXC, veth and bridge", BRIDGED_BY, Place::Lxc),
    ("systemd-nspawn, veth and bridge", BRIDGED_BY, Place::Nspawn),
];

/// Gives a command a /sys of its network namespace, in which LXC looks for the bridge, with the
/// cgroups of the one before.
const WITH_SYSFS: [&str; 5] = [
    "/usr/bin/unshare",
    "--mount",
    "/bin/sh",
    "-ec",
    "path=$PATH; PATH=/usr/sbin:/usr/bin:/sbin:/bin; mount --rbind /sys/fs/cgroup \"$GROUPS_AT\"; \
     mount -t sysfs sysfs /sys; mount --rbind \"$GROUPS_AT\" /sys/fs/cgroup; PATH=$path; \
     exec \"$0\" \"$@\"",
];

struct Network<'a> {
    stage: &'a Stage,
    /// By the numbers of hosts.
    wires: [Wire; 3],
    directory: String,
}

/// A command line of the holm that is measured.
fn holm_argv(stage: &Stage, args: &[&str]) -> Vec<String> {
    stage.holms[0].argv(args)
}

/// Runs a command of holm on the host of a wire.
fn holm(stage: &Stage, wire: &Wire, args: &[&str]) -> Result<String, String> {
    Case::new("holm", wire.host.argv(&holm_argv(stage, args))).output()
}

/// The instance number of the Holm root.
fn instance(stage: &Stage) -> Result<u32, String> {
    let path = stage.holms[0].root.join("instance");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.trim().parse().map_err(|_| format!("{}: no number", path.display()))
}

/// Two machines, the other one with its servers, and the directory that has the client.
fn prepare(stage: &Stage) -> Result<(Wire, String), String> {
    let directory = stage.path("netload");
    fs::create_dir_all(&directory).map_err(|e| format!("{directory}: {e}"))?;
    let program = stage.compile("netload/netload", include_str!("../../../netload.c"))?;
    let mut wire = Wire::new()?;
    wire.serve(&program)?;
    Ok((wire, directory))
}

/// Makes one of these guests, with the client at /bench; nothing else runs in it.
fn create(stage: &Stage, wire: &Wire, directory: &str, name: &str) -> Result<(), String> {
    let mount = format!("{directory}:/bench:ro");
    let address = format!("net.address={NATIVE}");
    let native = ["--net", "native", "--set", &address];
    let head = ["create", name, "--base", "minimal", "-v", &mount];
    let settings = match name {
        HOST_NET_GUEST => &["--net", "host"][..],
        NATIVE_GUEST => &native,
        _ => &[],
    };
    let command = ["--", "/bin/sleep", SLEEP];
    holm(stage, wire, &[&head[..], settings, &command].concat()).map(drop)
}

/// Does something while these guests run.
fn beside<T>(
    stage: &Stage,
    wire: &Wire,
    guests: &[&str],
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let started = guests.iter().try_for_each(|name| holm(stage, wire, &["start", name]).map(drop));
    let done = started.and_then(|()| work());
    let ended = guests.iter().try_for_each(|name| holm(stage, wire, &["kill", name]).map(drop));
    done.and_then(|done| ended.map(|()| done))
}

/// How the client runs: by itself, or on the server's CPU, which is never idle then.
const ON_ITS_OWN_CPU: &[&str] = &[];
const ON_THE_SAME_CPU: &[&str] = &["same-cpu"];

/// The client's command line, on the host or in a guest.
fn client(
    stage: &Stage,
    directory: &str,
    guest: Option<&str>,
    (kind, count): (&str, usize),
    how: &[&str],
) -> Vec<String> {
    let count = count.to_string();
    let client = [&["client", OUTSIDE, kind, &count], how].concat();
    let head = match guest {
        Some(name) => holm_argv(stage, &["exec", name, "--", "/bench/netload"]),
        None => vec![format!("{directory}/netload")],
    };
    head.into_iter().chain(client.into_iter().map(str::to_owned)).collect()
}

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let (plain, directory) = prepare(stage)?;
    let wires = [plain, prepare(stage)?.0, prepare(stage)?.0];
    wires[BRIDGED_BY].add_bridge()?;
    let network = Network { stage, wires, directory };
    let measured = network.create().and_then(|()| network.measure(n));
    network.remove();
    measured
}

impl Network<'_> {
    fn create(&self) -> Result<(), String> {
        guests().try_for_each(|(host, name)| {
            create(self.stage, &self.wires[host], &self.directory, name)
        })
    }

    fn remove(&self) {
        for (host, name) in guests() {
            let _ = holm(self.stage, &self.wires[host], &["rm", "--force", name]);
        }
    }

    /// Runs the client in a place; milliseconds, and those that all CPUs were busy for.
    fn client(
        &self,
        (_, host, place): &(&str, usize, Place),
        (kind, count, _): Load,
        how: &[&str],
    ) -> Result<(f64, f64), String> {
        let wire = &self.wires[*host];
        let client = |guest| client(self.stage, &self.directory, guest, (kind, count), how);
        let run = |argv: &[String]| Case::new(kind, wire.host.argv(argv)).output();
        let output = match place {
            Place::Host => run(&client(None)),
            Place::Guest(name) => beside(self.stage, wire, &[name], || run(&client(Some(name)))),
            Place::Lxc => self.in_lxc(wire, &client(None)[1..]),
            Place::Nspawn => run(&self.nspawn_argv(&client(None)[1..])),
        };
        figures(&output?)
    }

    fn in_lxc(&self, wire: &Wire, args: &[String]) -> Result<String, String> {
        let name = "bench-network";
        let bridge = Bridge { name: "br0", gateway: BRIDGE, address: BRIDGED };
        let lxc = Lxc { bench: Some(&self.directory), bridge: Some(bridge), limits: false };
        let config = peers::lxc_config(self.stage, name, "minimal-shifted", lxc)?;
        let directory = self.stage.path("lxc");
        let program = peers::find("lxc-execute").unwrap_or_default();
        let head = [program.as_str(), "-P", &directory, "-n", name, "-f", &config, "--"];
        let command = [&WITH_SYSFS[..], &head, &["/bench/netload"]].concat();
        let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
        let command = [&command[..], args].concat();
        let groups = self.stage.path("cgroups");
        fs::create_dir_all(&groups).map_err(|e| format!("{groups}: {e}"))?;
        let case = peers::lxc(self.stage, name, &wire.host.argv(&command))?;
        case.with_env("GROUPS_AT", groups).output()
    }

    /// Its interface is not configured by nspawn, but by what runs in it.
    fn nspawn_argv(&self, args: &[String]) -> Vec<String> {
        let bind = format!("--bind-ro={}:/bench", self.directory);
        let script = format!(
            "busybox ip addr add {BRIDGED}/24 dev host0; busybox ip link set host0 up; \
             busybox ip route add default via {BRIDGE}; exec /bench/netload \"$@\""
        );
        let head = ["-M", "bench-network", "--network-bridge=br0", &bind];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let command = [&head[..], &["/bin/sh", "-ec", &script, "netload"], &args].concat();
        peers::nspawn(self.stage, "minimal-shifted", &command)
    }

    fn measure(&self, n: usize) -> Result<String, String> {
        let mut text = String::from(INTRODUCTION);
        for load in LOADS {
            text += &self.on_two_cpus(load, n);
        }
        text += ON_ONE_CPU;
        for load in LOADS {
            text += &self.on_one_cpu(load, n);
        }
        self.wires.iter().try_for_each(|wire| wire.shape(1000))?;
        text += "\n## On a slower wire\n";
        text += &self.on_two_cpus(SHAPED, n);
        Ok(text)
    }

    fn on_one_cpu(&self, load: Load, n: usize) -> String {
        eprintln!("holm-bench: {}, on one CPU", load.2);
        let timed = take_turns(rows(), n, WARM_UP, |index| {
            self.client(&PLACES[index], load, ON_THE_SAME_CPU).map(|(took, _)| took)
        });
        format!("\n### {}\n\n{}", load.2, table(&timed, HOST))
    }

    fn on_two_cpus(&self, load: Load, n: usize) -> String {
        eprintln!("holm-bench: {}", load.2);
        let mut busy = vec![Vec::new(); PLACES.len()];
        let timed = take_turns(rows(), n, WARM_UP, |index| {
            let (took, cpu) = self.client(&PLACES[index], load, ON_ITS_OWN_CPU)?;
            busy[index].push(cpu);
            Ok(took)
        });
        let cpu: Vec<Outcome> = timed
            .iter()
            .zip(busy)
            .map(|(outcome, mut busy)| Outcome {
                row: outcome.row.clone(),
                samples: outcome.samples.clone().map(|_| busy.split_off(WARM_UP)),
            })
            .collect();
        format!(
            "\n### {}\n\n{}\nThe same of all CPUs (in steps of 10 ms):\n\n{}",
            load.2,
            table(&timed, HOST),
            table(&cpu, HOST)
        )
    }
}

/// The guests of Holm, and their hosts.
fn guests() -> impl Iterator<Item = (usize, &'static str)> {
    PLACES.iter().filter_map(|(_, host, place)| match place {
        Place::Guest(name) => Some((*host, *name)),
        _ => None,
    })
}

fn rows() -> Vec<Row> {
    PLACES.iter().map(|(name, ..)| Row::new(name)).collect()
}

fn figures(output: &str) -> Result<(f64, f64), String> {
    let mut words = output.split_whitespace().map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(Ok(took)), Some(Ok(busy))) => Ok((took, busy)),
        _ => Err(format!("the client printed {output:?}")),
    }
}

const INTRODUCTION: &str = "\
A client in each place and a server on the other machine, which are two network namespaces with a
veth pair between them; client and server have one CPU each. `native` and `private` are guests of
Holm, which run only while they are measured, as the others do. There are three such hosts, so that
no system pays for another: host and native guest are on one without rules, where nobody tracks
connections; the private guest is on one with Holm's rules; and LXC and systemd-nspawn are on one
with a bridge and masquerading, as lxc-net sets up. The client takes the time; CPU time is that of
the whole machine, the server's and what runs besides included. `host, again` is the same as `host`:
how far two equal rows are apart. `guest with the host's network` is a guest of Holm too, whose
network is the host's own (`net.mode=host`): what it takes longer than the host is due to its cgroup,
its system call filter and the like, and what a native guest takes longer than that to its network.
CoreLab's table has a virtual machine of KVM beside these (its Table 2); there is no KVM here, and
an emulated machine says nothing of speed.\n";

const ON_ONE_CPU: &str = "
## On one CPU

Client and server on the same CPU, which is never idle. Above, most of the time of short requests
is that of waking up a CPU, which a virtual machine takes long for; here it is that of the way
through the kernel.\n";
