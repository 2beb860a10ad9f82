//! A guest's range of ports: `auto:32`, `20000-20031`.

use crate::config::types::Ports;
use crate::config::units::Parsed;

const PORTS_HELP: &str = "write auto:32 or FIRST-LAST, as 20000-20031";

/// `auto`, `auto:N` for at most [`Ports::AUTO_MAX`] ports, or `FIRST-LAST`.
pub(in crate::config) fn ports(text: &str) -> Parsed<Ports> {
    let wrong = || format!("{text:?} is not a range of ports; {PORTS_HELP}");
    if text == "auto" {
        return Ok(Ports::Auto(Ports::AUTO_MAX));
    }
    if let Some(count) = text.strip_prefix("auto:") {
        let count: u16 = count.parse().map_err(|_| wrong())?;
        if !(1..=Ports::AUTO_MAX).contains(&count) {
            return Err(format!(
                "auto gives 1 to {} ports; for more write FIRST-LAST, as 20000-20099",
                Ports::AUTO_MAX
            ));
        }
        return Ok(Ports::Auto(count));
    }
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(format!("the range {text} runs backwards"));
    }
    if last - first >= RANGE_MAX {
        return Err(format!("a guest has at most {RANGE_MAX} ports by net.ports"));
    }
    Ok(Ports::Range(first, last))
}

/// The most ports of a range: each is tried, by TCP and UDP, when the guest starts.
const RANGE_MAX: u16 = 256;

impl std::fmt::Display for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto(count) => write!(f, "auto:{count}"),
            Self::Range(first, last) => write!(f, "{first}-{last}"),
        }
    }
}
