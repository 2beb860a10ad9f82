//! Requests to more and more guests with Apache (Zap paper, Figure 8).

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use super::guests::{Guests, HOST_NET, KINDS, NATIVE, PLAIN, PRIVATE, address};
use super::wire::Wire;
use super::{WARM_UP, figures};
use crate::rounds::{Case, Outcome, Row, take_turns};
use crate::stage::Stage;
use crate::stats::Summary;

const COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// So many guests have a plain root, of which each is a copy of the base, some 200 MiB.
const MOST_PLAIN: usize = 32;
/// Pages in a run, and how many are asked for at a time.
const REQUESTS: usize = 4000;
const WORKERS: usize = 8;
/// How long all may take to serve.
const PATIENCE: Duration = Duration::from_mins(2);
const BASE: &str = "apache";
const CONFIG: &str = "/etc/apache2/bench.conf";
const SETTINGS: &str = "\
ServerRoot /etc/apache2
ServerName bench
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
User www-data
Group www-data
PidFile /run/apache2.pid
ErrorLog /dev/null
DocumentRoot /var/www/html
DirectoryIndex index.html
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
";

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    stage.bootstrap(BASE, "apache2", |root| {
        let file = root.join(CONFIG.trim_start_matches('/'));
        fs::write(&file, SETTINGS).map_err(|e| format!("{}: {e}", file.display()))
    })?;
    stage.base(BASE)?;
    let (wire, directory) = super::prepare(stage)?;
    wire.add_addresses(KINDS.len(), COUNTS[COUNTS.len() - 1])?;
    let command = |kind, number| match kind {
        HOST_NET => server(&asked(kind, number)),
        _ => server("80"),
    };
    let kinds = [NATIVE, PRIVATE, HOST_NET];
    let mut guests = Guests::new(stage, &wire, BASE, &kinds, &[], &command);
    let settings = ["--set", "disk.kind=plain"];
    let mut copies = Guests::new(stage, &wire, BASE, &[PLAIN], &settings, &command);
    let mut plain = Plain { root: stage.path(BASE), wire: &wire, servers: Vec::new() };
    wire.forget_connections_at_once()?;
    let mut text = format!("{INTRODUCTION}\n{HEAD}");
    for count in COUNTS {
        eprintln!("holm-bench: Apache in {count} guests");
        guests.start_up_to(count)?;
        copies.start_up_to(count.min(MOST_PLAIN))?;
        plain.start_up_to(count)?;
        let client = Client { wire: &wire, program: format!("{directory}/netload") };
        let kinds = if count > MOST_PLAIN { &KINDS[..PLAIN] } else { &KINDS[..] };
        (0..kinds.len()).try_for_each(|kind| client.wait_for(kind, count))?;
        let rows = kinds.iter().map(|kind| Row::new(kind)).collect();
        let outcomes =
            take_turns(rows, n, WARM_UP, |kind| client.get(kind, count, REQUESTS, WORKERS));
        text += &row(count, outcomes)?;
    }
    Ok(text)
}

/// Where the server of a number is asked. A guest with the host's network cannot bind port 80.
fn asked(kind: usize, number: usize) -> String {
    format!("{}:{}", address(kind, number), if kind == HOST_NET { 8080 } else { 80 })
}

/// The command line of a server, on the last CPU.
fn server(listen: &str) -> Vec<String> {
    let last = available_parallelism().map_or(0, |count| count.get() - 1).to_string();
    let head = ["/usr/bin/taskset", "-c", &last, "/usr/sbin/apache2", "-f", CONFIG];
    let listen = format!("Listen {listen}");
    let tail = ["-c", &listen, "-DFOREGROUND"];
    head.iter().chain(&tail).map(|&arg| arg.to_owned()).collect()
}

/// Servers on the host, of the same files as the guests'.
struct Plain<'a> {
    root: String,
    wire: &'a Wire,
    servers: Vec<Child>,
}

impl Plain<'_> {
    /// Two for each number: those of `host` and of `host, again`.
    fn start_up_to(&mut self, count: usize) -> Result<(), String> {
        let device = Path::new(&self.root).join("dev/null");
        fs::write(&device, "").map_err(|e| format!("{}: {e}", device.display()))?;
        for number in self.servers.len() / 2..count {
            for kind in [0, 1] {
                let server = server(&asked(kind, number));
                let script = "mount -t tmpfs tmpfs \"$0/run\"; mount --bind /dev \"$0/dev\"; \
                              exec chroot \"$0\" \"$@\"";
                let head = ["unshare", "--mount", "sh", "-ec", script, &self.root];
                let argv = head.iter().map(|&arg| arg.to_owned()).chain(server);
                let argv = self.wire.host.argv(&argv.collect::<Vec<_>>());
                let mut command = Command::new(&argv[0]);
                let child = command.args(&argv[1..]).stdin(Stdio::null()).spawn();
                self.servers.push(child.map_err(|e| format!("{}: {e}", argv[0]))?);
            }
        }
        Ok(())
    }
}

impl Drop for Plain<'_> {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // Apache ends its own processes then, which it could not when it is killed.
            let _ = Command::new("kill").arg(server.id().to_string()).status();
        }
        for server in &mut self.servers {
            let _ = server.wait();
        }
    }
}

/// The client on the other machine.
struct Client<'a> {
    wire: &'a Wire,
    program: String,
}

impl Client<'_> {
    /// Gets pages; milliseconds.
    fn get(&self, kind: usize, count: usize, pages: usize, workers: usize) -> Result<f64, String> {
        let (pages, workers) = (pages.to_string(), workers.to_string());
        let head = [&self.program, "requests", &pages, &workers].map(str::to_owned);
        let servers = (0..count).map(|number| asked(kind, number));
        let argv: Vec<String> = head.into_iter().chain(servers).collect();
        let output = Case::new("requests", self.wire.outside.argv(&argv)).output()?;
        figures(&output).map(|(took, _)| took)
    }

    /// Until all servers have served a page.
    fn wait_for(&self, kind: usize, count: usize) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            match self.get(kind, count, count, 1) {
                Err(why) if begin.elapsed() > PATIENCE => {
                    return Err(format!("{}: {why}", KINDS[kind]));
                }
                Err(_) => sleep(Duration::from_millis(100)),
                Ok(_) => return Ok(()),
            }
        }
    }
}

fn row(count: usize, outcomes: Vec<Outcome>) -> Result<String, String> {
    let samples: Vec<Vec<f64>> =
        outcomes.into_iter().map(|outcome| outcome.samples).collect::<Result<_, _>>()?;
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = |of: &Vec<f64>| format!("{:.0}", REQUESTS as f64 * 1e3 / Summary::of(of).median);
    // Of rates: the other way round than of times.
    let times = |of: &Vec<f64>| Summary::of_ratios(&samples[0], of).with_spread();
    let cell = |text: Option<String>| format!(" {} |", text.unwrap_or_else(|| "-".to_owned()));
    let mut row = format!("| {count} |");
    for kind in [0, HOST_NET, NATIVE, PLAIN, PRIVATE] {
        row += &cell(samples.get(kind).map(rate));
    }
    for kind in [1, HOST_NET, NATIVE, PLAIN, PRIVATE] {
        row += &cell(samples.get(kind).map(times));
    }
    Ok(row + "\n")
}

const HEAD: &str = "\
| servers | host, pages/s | guest, host's network | native | native, plain root | private | \
host again, times host | guest, host's network | native | native, plain root | private |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

const INTRODUCTION: &str = "\
The other machine gets 4000 pages of 10 KiB (Debian's own of Apache), 8 at a time, each by a
connection of its own, from so many servers in turn: plain ones on the host, or one in each of so
many guests. The client has one CPU, and all servers another; servers of all kinds run at the same
time, one kind is asked. A private guest is asked by a published port; one with the host's network
shows what a guest costs apart from its network: mostly its root, an overlay with ids of its own, in
which the kernel walks paths more slowly for users other than root. A plain root (`disk.kind`) is a
directory as the host's, and no more than 32 guests have one here. `times host` is the ratio of
pages in a second (p10 to p90 of pairs); above 1 is faster. `host again` are other servers like those
of `host`: how far two equal rows are apart. The host tracks connections, as it does with private
guests, but forgets those that are closed after a second: so many would fill its table.\n";
