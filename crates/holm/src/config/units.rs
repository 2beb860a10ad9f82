//! Quantities with units. Sizes are binary: `1K` is 1024 bytes.

use std::num::IntErrorKind;
use std::time::Duration;

/// A value, or a sentence that says why the text is not one.
pub(super) type Parsed<T> = Result<T, String>;

const SIZE_HELP: &str =
    "a size is a number of bytes or has a unit K, M, G or T of 1024, 1024², ... bytes: 512M, 10G";

/// `512M`, `1.5G`, `4096`, `64KiB`: bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ if number.is_empty() => return Err(format!("{text:?} is not a size; {SIZE_HELP}")),
        "kb" | "mb" | "gb" | "tb" => {
            let short = unit[..1].to_ascii_uppercase();
            return Err(format!("{unit:?} may mean 1000 or 1024; write {number}{short} (1024)"));
        }
        "%" => return Err(format!("a share of the host's memory cannot be given; {SIZE_HELP}")),
        _ => return Err(format!("{unit:?} is not a unit of size; {SIZE_HELP}")),
    };
    scale(number, factor).ok_or_else(|| match decimal(number) {
        Some(_) => format!("{text} is more than any host has; {SIZE_HELP}"),
        None => format!("{text:?} is not a size; {SIZE_HELP}"),
    })
}

/// Bytes in the largest unit that is exact: `512M`, `1536M`, `4097`.
pub(super) fn show_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

const TIME_HELP: &str = "a time has a unit ms, s, min or h: 30s, 2min";

/// `30s`, `500ms`, `2min`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let millis: u64 = match unit {
        "ms" => 1,
        "" | "s" | "sec" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ if number.is_empty() => return Err(format!("{text:?} is not a time; {TIME_HELP}")),
        _ => return Err(format!("{unit:?} is not a unit of time; {TIME_HELP}")),
    };
    scale(number, millis)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is not a time; {TIME_HELP}"))
}

/// A time in the largest unit that is exact: `90s`, `2min`, `500ms`.
pub fn show_duration(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0 => "0s".to_owned(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}min", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

const RATE_HELP: &str = "a rate is a number of bits in a second or has a unit K, M or G of 1000, \
                         1000², ... bits: 10M, 1.5G";

/// `10M`, `1.5Gbit`, `9600`: bits in a second, at least 8000.
pub fn rate(text: &str) -> Parsed<u64> {
    let (number, unit) = split(text);
    let lower = unit.to_ascii_lowercase();
    let factor: u64 = match lower.strip_suffix("/s").unwrap_or(&lower) {
        "" | "bit" => 1,
        "k" | "kbit" => 1000,
        "m" | "mbit" => 1_000_000,
        "g" | "gbit" => 1_000_000_000,
        _ if number.is_empty() => return Err(format!("{text:?} is not a rate; {RATE_HELP}")),
        "bps" | "kbps" | "mbps" | "gbps" | "b" | "kb" | "mb" | "gb" => {
            return Err(format!("{unit:?} may mean bits or bytes; {RATE_HELP}"));
        }
        _ => return Err(format!("{unit:?} is not a unit of rate; {RATE_HELP}")),
    };
    let rate =
        scale(number, factor).ok_or_else(|| format!("{text:?} is not a rate; {RATE_HELP}"))?;
    if (8000..=1_000_000_000_000).contains(&rate) {
        Ok(rate)
    } else {
        Err(format!("{text} is out of range, 8K to 1000G"))
    }
}

/// Bits in a second in the largest unit that is exact: `10M`, `1500K`.
pub fn show_rate(rate: u64) -> String {
    for (factor, unit) in [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "K")] {
        if rate != 0 && rate.is_multiple_of(factor) {
            return format!("{}{unit}", rate / factor);
        }
    }
    rate.to_string()
}

const CPUS_HELP: &str = "write a number of CPUs (1.5) or a share of one CPU (25%, 150%)";

/// `1.5`, `1.5 CPUs`, `25%` (of one CPU): a number of CPUs, at least 0.01.
pub(super) fn cpus(text: &str) -> Parsed<f64> {
    let (number, unit) = split(text);
    let percent = match unit.to_ascii_lowercase().as_str() {
        "" | "cpu" | "cpus" => false,
        "%" => true,
        _ if number.is_empty() => {
            return Err(format!("{text:?} is not an amount of CPU time; {CPUS_HELP}"));
        }
        _ => return Err(format!("{unit:?} is not a unit of CPU time; {CPUS_HELP}")),
    };
    let value = decimal(number)
        .ok_or_else(|| format!("{text:?} is not an amount of CPU time; {CPUS_HELP}"))?;
    let cpus = if percent { value / 100.0 } else { value };
    // The kernel takes no quota below 1 ms in a period of 100 ms.
    if (0.01..=8192.0).contains(&cpus) {
        Ok(cpus)
    } else {
        Err(format!("{text} is out of range, 0.01 (1%) to 8192 CPUs"))
    }
}

/// A whole number from `low` to `high`.
pub(super) fn count(text: &str, low: u64, high: u64) -> Parsed<u64> {
    let digits = text.replace('_', "");
    match digits.parse::<u64>() {
        Ok(n) if (low..=high).contains(&n) && !digits.starts_with('+') => Ok(n),
        Ok(n) => Err(format!("{n} is out of range, {low} to {high}")),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("{text} is out of range, {low} to {high}"))
        }
        Err(_) => Err(format!("{text:?} is not a whole number from {low} on")),
    }
}

/// Splits `1.5 CPUs` into `1.5` and `CPUs`.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Only digits, `_` and one point: no `inf`, `nan`, `1e5` or sign.
fn decimal(number: &str) -> Option<f64> {
    let digits = number.replace('_', "");
    (digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.ends_with('.'))
        .then(|| digits.parse().ok())?
}

/// Whole numbers exactly, decimal ones rounded down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn scale(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.replace('_', "").parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let exact = decimal(number)? * factor as f64;
    // A float this large is no longer exact to a byte.
    (exact < 9.0e18).then_some(exact as u64)
}
