//! How exactly guests get what is reserved for them, and their shares, of an uplink that all fill.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::wire::{NATIVE, OUTSIDE, Wire};
use crate::build::SLEEP;
use crate::rounds::Case;
use crate::stage::Stage;
use crate::stats::Summary;

/// How long a round measures, and how long the connections have to fill the link before.
const ROUND: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(10);

/// The uplinks, in Mbit/s.
const LINKS: [u32; 3] = [10, 100, 1000];
/// As many guests share a link of this rate in the last table.
const MANY: (u32, u32) = (50, 100);

/// A guest that sends all the time.
struct Sender {
    name: String,
    /// What is reserved, in hundredths of the link.
    reserve: u32,
    share: u32,
    native: bool,
}

impl Sender {
    fn new(name: &str, reserve: u32, share: u32, native: bool) -> Self {
        Self { name: name.to_owned(), reserve, share, native }
    }

    fn settings(&self, link: u32) -> Vec<String> {
        let mut all = Vec::new();
        if self.reserve > 0 {
            all.push(format!("net.reserve={}K", link * 10 * self.reserve));
        }
        if self.share > 0 {
            all.push(format!("net.share={}", self.share));
        }
        if self.native {
            let address = format!("net.address={NATIVE}");
            all.extend([
                "net.mode=native".to_owned(),
                address,
                "net.share-address=true".to_owned(),
            ]);
        }
        all
    }

    fn described(&self) -> String {
        let mode = if self.native { "native" } else { "private" };
        match (self.reserve, self.share) {
            (reserve, 0) => format!("{mode}, {reserve} % reserved"),
            (0, share) => format!("{mode}, share {share}"),
            (reserve, share) => format!("{mode}, {reserve} % reserved, share {share}"),
        }
    }
}

/// What each should send, in Mbit/s: its reservation, and its share of what nobody has reserved.
fn expected(senders: &[Sender], link: u32) -> Vec<f64> {
    let link = f64::from(link);
    let reserved: u32 = senders.iter().map(|sender| sender.reserve).sum();
    let shares: u32 = senders.iter().map(|sender| sender.share).sum();
    let rest = link * f64::from(100 - reserved) / 100.0;
    let own = |sender: &Sender| {
        link * f64::from(sender.reserve) / 100.0
            + rest * f64::from(sender.share) / f64::from(shares)
    };
    senders.iter().map(own).collect()
}

struct Rates<'a> {
    stage: &'a Stage,
    wire: &'a Wire,
    directory: &'a str,
}

/// Measures so many rounds for each link.
pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    let (wire, directory) = super::prepare(stage)?;
    let rates = Rates { stage, wire: &wire, directory: &directory };
    let uplink = stage.holms[0].root.join("uplink.toml");
    let measured = rates.measure(&uplink, n);
    let _ = fs::remove_file(uplink);
    measured
}

impl Rates<'_> {
    fn measure(&self, uplink: &Path, n: usize) -> Result<String, String> {
        let mut text = INTRODUCTION.to_owned();
        for link in LINKS {
            let senders = [
                Sender::new("rates-0", 30, 0, false),
                Sender::new("rates-1", 10, 200, false),
                Sender::new("rates-2", 0, 100, true),
                Sender::new("rates-3", 0, 300, true),
            ];
            let sent = self.sent(uplink, link, &senders, n)?;
            text += &format!(
                "\n### {link} Mbit/s\n\n| guest | should send, Mbit/s | sent, of that |\n|---|---|---|\n"
            );
            for ((sender, should), sent) in senders.iter().zip(expected(&senders, link)).zip(sent) {
                let ratios: Vec<f64> = sent.iter().map(|sent| sent / should).collect();
                let ratio = Summary::of(&ratios).with_spread();
                text += &format!("| {} | {should:.1} | {ratio} |\n", sender.described());
            }
        }
        let (count, link) = MANY;
        let senders: Vec<_> =
            (0..count).map(|at| Sender::new(&format!("rates-{at}"), 0, 100, false)).collect();
        let sent = self.sent(uplink, link, &senders, n)?;
        let should = f64::from(link) / f64::from(count);
        let ratios: Vec<f64> = sent.iter().map(|sent| Summary::of(sent).median / should).collect();
        text += &format!(
            "\n### {count} guests with equal shares of {link} Mbit/s\n\nWhat each sent (median of \
             its rounds), of a {count}th of the link: {}; the least {:.3}, the most {:.3}.\n",
            Summary::of(&ratios).with_spread(),
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        );
        Ok(text)
    }

    /// What each guest sent in each round, in Mbit/s.
    fn sent(
        &self,
        uplink: &Path,
        link: u32,
        senders: &[Sender],
        n: usize,
    ) -> Result<Vec<Vec<f64>>, String> {
        eprintln!("holm-bench: {} guests on {link} Mbit/s", senders.len());
        let text = format!("rate = \"{link}M\"\n");
        fs::write(uplink, text).map_err(|e| format!("{}: {e}", uplink.display()))?;
        let mut clients = Vec::new();
        let measured = self.fill(link, senders, &mut clients).and_then(|()| {
            sleep(WARM_UP);
            self.rounds(senders, n)
        });
        for sender in senders {
            let _ = super::holm(self.stage, self.wire, &["rm", "--force", &sender.name]);
        }
        // They end with their guests.
        for mut client in clients {
            let _ = client.wait();
        }
        measured
    }

    fn fill(&self, link: u32, senders: &[Sender], clients: &mut Vec<Child>) -> Result<(), String> {
        let mount = format!("{}:/bench:ro", self.directory);
        for sender in senders {
            let settings = sender.settings(link);
            let set = settings.iter().flat_map(|setting| ["--set", setting]);
            let head = ["create", &sender.name, "--base", "minimal", "-v", &mount];
            let args: Vec<&str> =
                head.into_iter().chain(set).chain(["--", "/bin/sleep", SLEEP]).collect();
            super::holm(self.stage, self.wire, &args)?;
            super::holm(self.stage, self.wire, &["start", &sender.name])?;
        }
        for sender in senders {
            let client = [
                "exec",
                &sender.name,
                "--",
                "/bench/netload",
                "client",
                OUTSIDE,
                "stream",
                "100000000",
            ];
            let argv = self.wire.host.argv(&self.stage.holms[0].argv(&client));
            let messages = self.stage.path("rates-messages");
            clients.push(Case::new("client", argv).spawn(Path::new(&messages))?);
        }
        Ok(())
    }

    fn rounds(&self, senders: &[Sender], n: usize) -> Result<Vec<Vec<f64>>, String> {
        let classes = senders.iter().map(|sender| self.class(&sender.name));
        let classes = classes.collect::<Result<Vec<_>, _>>()?;
        let mut all = vec![Vec::new(); senders.len()];
        for _ in 0..n {
            let (begin, before) = (Instant::now(), self.bytes()?);
            sleep(ROUND);
            let (after, took) = (self.bytes()?, begin.elapsed().as_secs_f64());
            for (rates, class) in all.iter_mut().zip(&classes) {
                let sent = |of: &BTreeMap<u32, f64>| of.get(class).copied().unwrap_or_default();
                rates.push((sent(&after) - sent(&before)) * 8.0 / took / 1e6);
            }
        }
        Ok(all)
    }

    /// The class of a guest: instance number * 1024 + context id.
    fn class(&self, name: &str) -> Result<u32, String> {
        let instance = super::instance(self.stage)?;
        let ids =
            fs::read_dir(self.stage.holms[0].root.join("ids")).map_err(|e| format!("ids: {e}"))?;
        for id in ids.flatten() {
            if fs::read_link(id.path()).is_ok_and(|guest| guest.ends_with(name)) {
                let context = id.file_name().to_str().and_then(|id| id.parse::<u32>().ok());
                return Ok(instance << 10 | context.ok_or("ids")?);
            }
        }
        Err(format!("{name} has no context id"))
    }

    /// The bytes that each class of the uplink has sent.
    fn bytes(&self) -> Result<BTreeMap<u32, f64>, String> {
        let tc = ["tc", "-s", "class", "show", "dev", "up0"].map(str::to_owned);
        let text = Case::new("tc", self.wire.host.argv(&tc)).output()?;
        let (mut all, mut class) = (BTreeMap::new(), None);
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["class", "htb", id, ..] => {
                    let minor = id.split(':').nth(1).unwrap_or_default();
                    class = u32::from_str_radix(minor, 16).ok();
                }
                ["Sent", bytes, ..] => all.extend(class.take().zip(bytes.parse().ok())),
                _ => {}
            }
        }
        Ok(all)
    }
}

const INTRODUCTION: &str = "\
Guests that all send by TCP as fast as they can, to another machine at the end of a veth pair, which
is the uplink. What each class of HTB has sent is read at the begin and the end of rounds of five
seconds; it counts headers too. `sent, of that` is 1 if a guest gets exactly what is reserved for it
and its share of the rest.\n";
