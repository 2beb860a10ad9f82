//! `holm flows`.

use std::net::{IpAddr, SocketAddr};
use std::time::UNIX_EPOCH;

use clap::Args;
use holm::cgroup::Figures;
use holm::flows::{self, Flow, Kind, Query};
use holm::guest;
use holm::pool::Name;

use crate::context::Context;
use crate::output::{self, protocol_name};
use crate::table::{self, Cell};
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Flows>(
    Group::Guests,
    "flows",
    "Tell which guest had an address and port at a time",
)
.examples(
    "holm flows --address 192.0.2.2:40022                # who was that?\n\
     holm flows --address 192.0.2.2:40022 --since 2026-11-22T19:00:00Z --until 2026-11-22T19:05:00Z\n\
     holm flows web --since 2h                           # all that web has had and opened\n\
     holm flows --json --since 1d | jq '.[] | select(.kind == \"connection\")'\n\n\
     Addresses and published ports of guests are always recorded. What a private guest opens from\n\
     the host's address is recorded with net.flows = true. How long a connection lasted is not:\n\
     look some time before the one that you ask about.",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Flows {
    /// Only this address, or address and port; an IPv6 address with a port in brackets
    #[arg(long, short, value_name = "ADDRESS[:PORT]", value_parser = address)]
    address: Option<(IpAddr, Option<u16>)>,
    /// Leave out what had ended before: a time such as 2026-11-22T19:00:00Z, or how long ago
    #[arg(long, short, value_name = "TIME", value_parser = time)]
    since: Option<u64>,
    /// Leave out what began later
    #[arg(long, short, value_name = "TIME", value_parser = time)]
    until: Option<u64>,
    /// Only these guests, which need not exist any more
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

fn address(text: &str) -> Result<(IpAddr, Option<u16>), String> {
    let whole = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = whole.parse::<IpAddr>() {
        return Ok((address.to_canonical(), None));
    }
    match text.parse::<SocketAddr>() {
        Ok(both) => Ok((both.ip().to_canonical(), Some(both.port()))),
        Err(_) => Err("write an address, or 192.0.2.2:40022, or [2001:db8::2]:40022".to_owned()),
    }
}

/// A time in seconds since 1970.
fn time(text: &str) -> Result<u64, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return Ok(term::now().saturating_sub(ago.as_secs()));
    }
    let time = humantime::parse_rfc3339_weak(text).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_secs())
        .ok_or_else(|| {
            "write a time in UTC such as 2026-11-22T19:00:00Z, or how long ago, such as 2h"
                .to_owned()
        })
}

impl Run for Flows {
    fn run(self, context: &Context) -> Outcome {
        for name in &self.names {
            Name::new(name)?;
        }
        let (address, port) = self.address.unzip();
        let query = Query {
            guests: self.names,
            address,
            port: port.flatten(),
            since: self.since,
            until: self.until,
        };
        let mut found = Vec::new();
        if let Some(pool) = context.look_if_any()? {
            let guests = guest::list(&pool, Figures::Current)?;
            let running = guests.iter().filter_map(|it| Some((&it.name, it.record.as_ref()?)));
            found = flows::find(&pool, &query, &running.collect::<Vec<_>>())?;
        }
        let text = if context.json {
            let documents = found.iter().map(|flow| output::json(&output::Flow::from(flow)));
            format!("{}\n", output::array(documents))
        } else {
            let rows: Vec<_> = found.iter().map(row).collect();
            table::table(&HEAD, &rows, context.colour, context.width)
        };
        term::print(&text);
        if found.is_empty() && !context.json {
            term::print_error("nothing is recorded that fits\n");
        }
        Ok(0)
    }
}

const HEAD: [&str; 5] = ["FROM", "UNTIL", "GUEST", "HAD", "WITH"];

fn row(flow: &Flow) -> Vec<Cell> {
    let until = match (&flow.kind, flow.until) {
        (Kind::Connection { .. } | Kind::Lost, _) => "-".to_owned(),
        (_, Some(until)) => output::Time::new(until).to_string(),
        (_, None) if flow.running => "now".to_owned(),
        (_, None) => "unknown".to_owned(),
    };
    let end = |(address, port): (IpAddr, u16)| SocketAddr::new(address, port).to_string();
    let (had, with) = match &flow.kind {
        Kind::Address(address) => (format!("{address}, all ports"), "-".to_owned()),
        Kind::Ports(ports) => (format!("published {}", ports.join(" ")), "-".to_owned()),
        Kind::Host => ("the host's addresses".to_owned(), "the host".to_owned()),
        Kind::Connection { protocol, local, remote } => {
            (format!("{} {}", protocol_name(*protocol), end(*local)), end(*remote))
        }
        Kind::Lost => ("more connections than could be recorded".to_owned(), "-".to_owned()),
    };
    [output::Time::new(flow.from).to_string(), until, flow.guest.clone(), had, with]
        .map(Cell::from)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_port() {
        let plain = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, expected) in [
            ("192.0.2.2", (plain("192.0.2.2"), None)),
            ("192.0.2.2:25", (plain("192.0.2.2"), Some(25))),
            ("2001:db8::2", (plain("2001:db8::2"), None)),
            ("[2001:db8::2]", (plain("2001:db8::2"), None)),
            ("[2001:db8::2]:25", (plain("2001:db8::2"), Some(25))),
            ("::ffff:192.0.2.2", (plain("192.0.2.2"), None)),
        ] {
            assert_eq!(address(text), Ok(expected), "{text}");
        }
        for text in ["", "25", ":25", "web", "192.0.2.2:x", "192.0.2.2:70000"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_moments_or_how_long_ago() {
        assert_eq!(time("2023-11-14T22:13:20Z"), Ok(1_700_000_000));
        assert_eq!(time("2023-11-14 22:13:20"), Ok(1_700_000_000));
        let ago = term::now() - time("2h").unwrap();
        assert!((7200..7260).contains(&ago), "{ago}");
        for text in ["", "yesterday", "1960-01-01T00:00:00Z"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
