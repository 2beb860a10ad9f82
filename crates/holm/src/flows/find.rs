//! Answers who had an address and port.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use holm_proto::Flow as Record;

use super::connections;
use super::error::Error;
use super::runs::{self, Has, Run};
use crate::config::Publish;
use crate::pool::{Name, Pool};
use crate::record::{RunRecord, shown_ports};

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Guests; empty means all.
    pub guests: Vec<String>,
    /// An address.
    pub address: Option<IpAddr>,
    /// A port.
    pub port: Option<u16>,
    /// What had ended before is left out; seconds since 1970.
    pub since: Option<u64>,
    /// What began later is left out; seconds since 1970.
    pub until: Option<u64>,
}

/// What a guest has had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The guest's name. Another guest may have it by now.
    pub guest: String,
    /// What it is.
    pub kind: Kind,
    /// When it began, in seconds since 1970.
    pub from: u64,
    /// When it ended, in seconds since 1970; `None` if it goes on or nobody was left to record it.
    pub until: Option<u64>,
    /// Whether it goes on; false for connections, of which that is not known.
    pub running: bool,
}

/// What a guest can have of the host's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An address with all its ports.
    Address(IpAddr),
    /// Published ports, as `net.publish` has them.
    Ports(Vec<String>),
    /// All addresses of the host, with the host and other guests.
    Host,
    /// A connection that it has opened.
    Connection {
        /// The number of the protocol.
        protocol: u8,
        /// The address and port that others have seen.
        local: (IpAddr, u16),
        /// With whom it was.
        remote: (IpAddr, u16),
    },
    /// More connections than could be recorded.
    Lost,
}

/// How much later than it was opened a connection may be recorded, in seconds.
const LATE: u64 = 1;

/// What is recorded and fits the question, in the order in which it began. Those that are in
/// `running` run, by their names.
pub fn find(
    pool: &Pool,
    query: &Query,
    running: &[(&Name, &RunRecord)],
) -> Result<Vec<Flow>, Error> {
    let mut found = of_runs(with_running(runs::read(pool)?, running), query);
    for flow in &mut found {
        let runs = running.iter().any(|(name, _)| name.as_str() == flow.guest);
        flow.running = flow.until.is_none() && runs;
    }
    for (guest, directory) in connections::guests(pool)? {
        let guest = guest.as_str();
        if query.is_about(guest) {
            let records = connections::read(&directory)?;
            found.extend(records.into_iter().filter_map(|record| query.opened(guest, record)));
        }
    }
    found.sort_by_key(|flow| flow.from);
    Ok(found)
}

/// All runs, with those of guests that have run for longer than the log goes back.
fn with_running(mut all: Vec<Run>, running: &[(&Name, &RunRecord)]) -> Vec<Run> {
    let is_open = |run: &&Run| run.until.is_none();
    let open: HashSet<String> = all.iter().filter(is_open).map(|run| run.guest.clone()).collect();
    for (name, record) in running.iter().filter(|(name, _)| !open.contains(name.as_str())) {
        let guest = name.to_string();
        let run = |has| Run { guest, has, from: record.started, until: None };
        all.extend(Has::of(&record.network).map(run));
    }
    all
}

/// What guests have had in runs. Each line of the log names all again that a guest has, which is
/// one flow as long as it goes on.
fn of_runs(all: Vec<Run>, query: &Query) -> Vec<Flow> {
    let mut found: Vec<Flow> = Vec::new();
    let mut before: HashMap<String, Vec<usize>> = HashMap::new();
    for run in all.into_iter().filter(|run| query.is_about(&run.guest)) {
        let last = before.remove(&run.guest).unwrap_or_default();
        let goes_on = |flow: &Flow, kind: &Kind| flow.until == Some(run.from) && flow.kind == *kind;
        let mut own = Vec::new();
        for kind in query.parts_of(&run) {
            if let Some(at) = last.iter().copied().find(|at| goes_on(&found[*at], &kind)) {
                found[at].until = run.until;
                own.push(at);
                continue;
            }
            own.push(found.len());
            let (guest, from, until) = (run.guest.clone(), run.from, run.until);
            found.push(Flow { guest, kind, from, until, running: false });
        }
        before.insert(run.guest, own);
    }
    found.retain(|flow| query.is_in_time(flow.from, flow.until));
    found
}

impl Query {
    fn is_about(&self, guest: &str) -> bool {
        self.guests.is_empty() || self.guests.iter().any(|name| name == guest)
    }

    fn is_in_time(&self, from: u64, until: Option<u64>) -> bool {
        self.until.is_none_or(|limit| from <= limit)
            && self.since.is_none_or(|since| until.is_none_or(|until| until >= since))
    }

    /// What of a run fits.
    fn parts_of(&self, run: &Run) -> Vec<Kind> {
        let addresses = run.has.addresses.iter().copied();
        let mut parts: Vec<Kind> = addresses
            .filter(|address| self.address.is_none_or(|asked| asked == *address))
            .map(Kind::Address)
            .collect();
        let published: Vec<Publish> =
            run.has.ports.iter().filter(|port| self.fits(port)).copied().collect();
        if !published.is_empty() {
            parts.push(Kind::Ports(shown_ports(&published)));
        }
        if run.has.host {
            parts.push(Kind::Host);
        }
        parts
    }

    /// A port that is published at all addresses of the host fits any: which the host had is not
    /// known any more.
    fn fits(&self, port: &Publish) -> bool {
        let at = port.host_ip.filter(|address| !address.is_unspecified());
        self.port.is_none_or(|asked| asked == port.host_port)
            && self.address.is_none_or(|asked| at.is_none_or(|at| at == asked))
    }

    fn opened(&self, guest: &str, record: Record) -> Option<Flow> {
        let (kind, from) = match record {
            Record::Lost { at } => (Kind::Lost, at),
            Record::Opened { at, protocol, from, to } => {
                let local = (plain(from.0), from.1);
                let fits = self.address.is_none_or(|asked| asked == local.0)
                    && self.port.is_none_or(|asked| asked == local.1);
                if !fits {
                    return None;
                }
                (Kind::Connection { protocol, local, remote: (plain(to.0), to.1) }, at)
            }
        };
        // How long it lasted is not recorded: one that began before may have gone on.
        let is_early = self.until.is_none_or(|limit| from <= limit.saturating_add(LATE));
        let is_late = self.since.is_none_or(|since| from >= since);
        (is_early && is_late).then(|| Flow {
            guest: guest.to_owned(),
            kind,
            from,
            until: None,
            running: false,
        })
    }
}

/// An IPv4 address as such.
fn plain(address: Ipv6Addr) -> IpAddr {
    IpAddr::V6(address).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ports::decode;

    fn run(from: u64, until: Option<u64>) -> Run {
        let has = Has {
            addresses: vec!["10.97.0.1".parse().unwrap()],
            ports: decode("8080-8082:80/tcp 192.0.2.9:53:53/udp"),
            host: false,
        };
        Run { guest: "web".into(), has, from, until }
    }

    #[test]
    fn what_goes_on_is_one_flow() {
        let query = Query { port: Some(8080), ..Query::default() };
        let found = of_runs(vec![run(1, Some(5)), run(5, Some(7)), run(8, None)], &query);
        let times: Vec<_> = found.iter().map(|flow| (flow.from, flow.until)).collect();
        // An address and ports each.
        assert_eq!(times, [(1, Some(7)), (1, Some(7)), (8, None), (8, None)]);
    }

    #[test]
    fn times_overlap() {
        let at = |since, until| Query { since, until, ..Query::default() };
        assert!(at(Some(10), None).is_in_time(5, Some(10)) && at(None, None).is_in_time(5, None));
        assert!(at(Some(10), None).is_in_time(5, None));
        assert!(!at(Some(11), None).is_in_time(5, Some(10)));
        assert!(at(None, Some(5)).is_in_time(5, None) && !at(None, Some(4)).is_in_time(5, None));
    }

    #[test]
    fn an_address_and_a_port_select() {
        let ask = |address: &str, port| Query {
            address: Some(address.parse().unwrap()),
            port,
            ..Query::default()
        };
        let ports = |all: &[&str]| Kind::Ports(all.iter().map(ToString::to_string).collect());
        let told = |query: Query| query.parts_of(&run(1, None));
        assert_eq!(told(ask("192.0.2.2", Some(8081))), [ports(&["8081:81/tcp"])]);
        assert_eq!(told(ask("192.0.2.2", Some(53))), []);
        assert_eq!(told(ask("192.0.2.9", Some(53))), [ports(&["192.0.2.9:53:53/udp"])]);
        assert_eq!(told(ask("10.97.0.1", Some(22))), [Kind::Address("10.97.0.1".parse().unwrap())]);
    }

    #[test]
    fn connections_are_told_by_the_hosts_port() {
        let mapped = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().to_ipv6_mapped();
        let record = Record::Opened {
            at: 100,
            protocol: 6,
            from: (mapped("192.0.2.2"), 40000),
            to: (mapped("198.51.100.1"), 25),
        };
        let ask = |port, since, until| {
            let address = Some("192.0.2.2".parse().unwrap());
            Query { address, port, since, until, ..Query::default() }.opened("web", record)
        };
        let found = ask(Some(40000), Some(100), Some(99)).unwrap();
        let ends = |address: &str, port| (address.parse().unwrap(), port);
        let (local, remote) = (ends("192.0.2.2", 40000), ends("198.51.100.1", 25));
        assert_eq!(found.kind, Kind::Connection { protocol: 6, local, remote });
        assert_eq!(ask(Some(25), None, None), None);
        assert_eq!(ask(None, Some(101), None), None);
        assert_eq!(ask(None, None, Some(98)), None);
    }
}
