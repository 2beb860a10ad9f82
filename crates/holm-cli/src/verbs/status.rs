//! `holm status`.

use clap::Args;
use holm::cgroup::Usage;
use holm::config::{NetMode, show_rate};
use holm::guest::{self, Guest, Summary};
use holm::monitor::{Ended, How};
use holm::net::{Counted, LanTraffic, Reason, Traffic, Volume};
use holm::pool::Name;
use holm::record::{LastRun, Network, RunRecord, Shaping, shown_ports};

use super::ls;
use crate::context::Context;
use crate::output;
use crate::several::Names;
use crate::table;
use crate::term::{self, paint};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<StatusOf>(Group::Guests, "status", "Show how guests are")
    .aliases(&["info"])
    .examples("holm status web\nholm status web db --json\nholm status --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct StatusOf {
    #[command(flatten)]
    names: Names,
}

impl Run for StatusOf {
    fn run(self, context: &Context) -> Outcome {
        // A line between one guest's and the next one's.
        let gap = if self.names.are_several() { "\n" } else { "" };
        self.names.including_ephemeral().looking().each(context, |pool, name| {
            let guest = guest::summary(&Guest::new(pool, &Name::new(name)?))?;
            let text = format!("{}{gap}", text(&guest, context.colour).trim_end());
            Ok((text, output::json(&output::Guest::from(&guest))))
        })
    }
}

fn text(guest: &Summary, colour: bool) -> String {
    let (status, hue) = ls::state_text(guest.status);
    let mut lines = vec![
        ("name", guest.name.to_string()),
        ("state", paint(status, hue, colour)),
        ("base", guest.base.clone()),
    ];
    if let Some(state) = &guest.record {
        running(&mut lines, state);
    }
    if let Some(usage) = &guest.usage {
        limits(&mut lines, usage);
    }
    if let Some(state) = &guest.record {
        lan(&mut lines, &state.network, &guest.lan);
    }
    if let Some(counted) = &guest.traffic {
        traffic(&mut lines, counted);
    }
    for (key, denies) in [("allows", false), ("denies", true)] {
        let matched: Vec<String> =
            guest.access.iter().filter(|it| it.denies == denies).map(matched).collect();
        if !matched.is_empty() {
            lines.push((key, matched.join(", ")));
        }
    }
    if guest.oom_kills > 0 {
        lines.push((
            "out of memory",
            format!("{} killed in this run", term::processes(guest.oom_kills)),
        ));
    }
    if let Some(last) = &guest.last {
        lines.push(("last run", last_text(last)));
        if let Some(failure) = &last.failure {
            lines.push(("restart", format!("failed: {failure}")));
        }
        if let Some(pending) = &last.pending {
            let wait = term::span(pending.left());
            lines.push(("restart", format!("in {wait}, attempt {}", last.restarts)));
        }
    }
    if guest.monitor_missing {
        let text = "none: it was killed; another command is working on the guest, and the next one starts a new monitor";
        lines.push(("monitor", text.to_owned()));
    }
    lines.extend(guest.ruleset_notice.clone().map(|what| ("network rules", what)));
    if guest.readiness == Some(guest::Readiness::Unknown) {
        let text = "not known: its monitor died before init reported it, and the new one cannot receive the report";
        lines.push(("ready", text.to_owned()));
    }
    lines.extend(guest.status_text.clone().map(|text| ("init reports", text)));
    lines.extend(guest.problem.clone().map(|problem| ("problem", problem)));
    table::list(&lines, colour)
}

/// What it uses, of what it may use.
fn limits(lines: &mut Vec<(&str, String)>, usage: &Usage) {
    let of = |limit: Option<String>| limit.map_or(String::new(), |limit| format!(" of {limit}"));
    let peak = |peak: Option<String>| peak.map_or(String::new(), |peak| format!(" (peak {peak})"));
    if let Some(memory) = usage.memory {
        let limit = of(usage.memory_limit.map(term::size));
        let peak = peak(usage.memory_peak.map(term::size));
        lines.push(("memory", format!("{}{limit}{peak}", term::size(memory))));
    }
    let cap = usage.cpu_cap.map_or(String::new(), |cap| format!(", at most {cap} CPUs"));
    lines.push(("CPU time", term::cpu_time(usage.cpu_usec) + &cap));
    if let Some(pids) = usage.pids {
        let limit = of(usage.pids_limit.map(|limit| limit.to_string()));
        let peak = peak(usage.pids_peak.map(|peak| peak.to_string()));
        lines.push(("pids", format!("{pids}{limit}{peak}")));
    }
}

fn running(lines: &mut Vec<(&str, String)>, state: &RunRecord) {
    lines.push(("up", term::span(state.age())));
    if state.init_pid != 0 {
        lines.push(("init", format!("pid {} on the host", state.init_pid)));
    }
    if let Some(at) = state.adopted {
        lines.push(("monitor", format!("replaced {}: the one before was killed", term::ago(at))));
    }
    let first = state.ids.base;
    lines.push(("ids", format!("{first} to {}", first + state.ids.count - 1)));
    match state.network.mode {
        NetMode::None if !state.network.lan.is_empty() => {}
        NetMode::None => lines.push(("network", "none".to_owned())),
        NetMode::Host => lines.push(("network", "the host's".to_owned())),
        NetMode::Native => {
            let own: Vec<String> = state.network.native.iter().map(ToString::to_string).collect();
            lines.push(("network", "the host's, with addresses of its own".to_owned()));
            if !own.is_empty() {
                lines.push(("address", own.join(" ")));
            }
        }
        NetMode::Private => {
            let v6 = state.network.guest_v6.map_or(String::new(), |a| format!(" {a}"));
            lines.push(("address", format!("{}{v6}", state.network.guest_v4)));
            let ports = shown_ports(&state.network.publish);
            if !ports.is_empty() {
                lines.push(("ports", ports.join(", ")));
            }
        }
    }
    lines.extend(state.network.shaping.as_ref().map(|shaping| ("rates", rates(shaping))));
}

/// Its interfaces in networks of the host's, and what passed there.
fn lan(lines: &mut Vec<(&str, String)>, network: &Network, traffic: &[Option<LanTraffic>]) {
    for (at, lan) in network.lan.iter().enumerate() {
        let (name, ethernet) = (network.lan_name(at), output::ethernet(lan.ethernet));
        let mut parts = vec![format!("{name} on {}, {ethernet}", lan.settings)];
        if let Some(LanTraffic { sent, received, dropped }) =
            traffic.get(at).and_then(Option::as_ref)
        {
            parts.push(format!("sent {}, received {}", volume(*sent), volume(*received)));
            let dropped = dropped.filter(|dropped| *dropped > 0);
            parts.extend(dropped.map(|packets| format!("{packets} dropped that it may not send")));
        }
        lines.push(("interface", parts.join("; ")));
    }
}

fn volume(volume: Volume) -> String {
    format!("{} in {}", term::size(volume.bytes), term::count(volume.packets, "packet"))
}

/// What it has sent and received.
fn traffic(lines: &mut Vec<(&str, String)>, traffic: &Traffic) {
    lines.push(("sent", volume(traffic.sent)));
    lines.push(("received", volume(traffic.received)));
    let Traffic { opened, accepted, .. } = traffic;
    lines.push(("connections", format!("{opened} opened, {accepted} accepted")));
    let dropped = traffic.dropped.iter().filter(|(_, packets)| *packets > 0);
    let dropped: Vec<String> =
        dropped.map(|(reason, packets)| format!("{packets} {}", why(*reason))).collect();
    if !dropped.is_empty() {
        lines.push(("dropped", dropped.join(", ")));
    }
}

/// What an item of `net.allow` or `net.deny` has matched.
fn matched(counted: &Counted) -> String {
    format!("{} ({})", counted.rule, term::count(counted.matched.packets, "packet"))
}

/// Which packets were dropped or refused.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::ForeignSource => "from an address that is not its own",
        Reason::ForeignDestination => "to an address that is not its own",
        Reason::OverCap => "faster than net.cap",
        Reason::TooManyConnections => "of more connections than it may have",
        Reason::IsolatedGuest => "to guests that it may not reach",
        Reason::HostService => "to services of the host",
    }
}

/// How fast a guest sends through the uplink.
fn rates(shaping: &Shaping) -> String {
    let Shaping { uplink_name, uplink_rate, reserve, share, cap, .. } = shaping;
    let parts = [
        reserve.map(|rate| format!("{} reserved", show_rate(rate))),
        share.map(|share| format!("share {share}")),
        cap.map(|rate| format!("at most {}", show_rate(rate))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} of {uplink_name}, {}", parts.join(", "), show_rate(*uplink_rate))
}

/// How a guest ended, as text.
pub fn ended_text(last: &LastRun) -> String {
    match Ended::parse(&last.ended) {
        Some(ended) if ended.is_reboot() => "rebooted".to_owned(),
        Some(ended) if ended.is_poweroff() => "powered off".to_owned(),
        Some(Ended { how: How::Exited(0), adopted: true }) => {
            "exited with 0, or rebooted, or powered off: its monitor had been killed, and another cannot tell"
                .to_owned()
        }
        Some(ended) => how_text(ended.how),
        None => last.ended.clone(),
    }
}

/// How the last run ended, as text.
fn last_text(last: &LastRun) -> String {
    let how = ended_text(last);
    let asked = if last.asked { ", as a command had requested" } else { "" };
    let oom = match last.oom_kills {
        Some(0) => String::new(),
        None => "; it is not known how often it ran out of memory".to_owned(),
        Some(n) => format!("; out of memory, {} killed", term::processes(n)),
    };
    format!("{how}{asked}, {}{oom}", term::ago(last.at))
}

/// An end as text.
pub fn how_text(how: How) -> String {
    match how {
        How::Exited(status) => format!("exited with {status}"),
        How::Killed(signal) => {
            format!("killed by {}", holm::config::Signal(i32::from(signal)))
        }
        How::Unknown => "ended, status unknown".to_owned(),
    }
}
