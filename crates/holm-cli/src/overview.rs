//! The text of `holm --help`.

use std::fmt::Write;

use crate::verb::{Group, Table};

const GROUPS: [(Group, &str); 4] = [
    (Group::Guests, "Guests"),
    (Group::Inside, "Inside a guest"),
    (Group::Settings, "Settings"),
    (Group::Host, "Host"),
];

/// All verbs with a line each, and the global options.
pub fn overview(table: Table) -> String {
    let mut text = String::from(
        "holm runs system containers, called guests: many complete Linux systems on one kernel.\n\n\
         Usage: holm [OPTIONS] VERB ...\n",
    );
    for (group, title) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title}:");
        for verb in table.all().filter(|v| v.group == group) {
            let _ = writeln!(text, "  {:<11} {}", verb.name, verb.about);
        }
    }
    text + "\nOptions:\n\
         \x20 --root DIR    where everything is kept [default: HOLM_ROOT, else /var/lib/holm]\n\
         \x20 --json        print JSON\n\
         \x20 -q, --quiet   print errors only\n\
         \x20 --color WHEN  auto, always or never [default: auto]\n\
         \x20 -h, --help    this text; holm help VERB tells more and gives examples\n\
         \x20 -V, --version\n"
}
