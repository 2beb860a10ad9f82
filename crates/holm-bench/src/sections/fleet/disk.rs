//! What takes the disk of guests with many servers.

use super::guests::{Fleet, Kind};
use crate::build::Holm;
use crate::free::allocated;
use crate::stage::Stage;

/// Directories of which each guest has much of its own.
const LARGEST: [&str; 3] = ["var/log/journal", "var/lib/postgresql", "etc"];

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    stage.servers()?;
    let mut text = String::from(
        "KiB for each guest after its first boot: what is no longer free on the disk, and what the \
         files of its\nprivate layer have allocated, which counts shared extents each time. \
         `small-journal` has\n`SystemMaxFileSize=1M` in journald.conf.\n\n\
         | | guests | disk | private layer |",
    );
    for directory in LARGEST {
        text += &format!(" /{directory} |");
    }
    text += &format!("\n|---|{}\n", "---:|".repeat(3 + LARGEST.len()));
    for kind in [Kind::Unified, Kind::SmallJournal] {
        text += &row(&stage.holms[0], kind, stage.guests)?;
    }
    Ok(text)
}

fn row(holm: &Holm, kind: Kind, count: usize) -> Result<String, String> {
    let mut fleet = Fleet::new(holm, kind, &[])?;
    let end = fleet.create_up_to(count)?.map_or(String::new(), |why| format!(" ({why})"));
    fleet.start(&fleet.names)?;
    let guests = fleet.names.len().max(1) as u64;
    let disk = fleet.disk()? / 1024 / guests;
    let each = |below: &str| {
        let layer = |name: &String| holm.root.join("guests").join(name).join("disk/upper");
        fleet.names.iter().map(|name| allocated(&layer(name).join(below))).sum::<u64>() / guests
    };
    let directories: Vec<String> = LARGEST.iter().map(|below| each(below).to_string()).collect();
    Ok(format!(
        "| {} | {guests}{end} | {disk} | {} | {} |\n",
        kind.name(),
        each(""),
        directories.join(" | ")
    ))
}
